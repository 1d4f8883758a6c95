/** Keeps a query of the entity manager inside one organization; on for every fork that serves a caller. */
export const ORGANIZATION_FILTER = {
  organization: {
    name: 'organization',
    cond: ({ organizationId }: { organizationId: string }) => ({ organizationId }),
    default: false,
  },
}
