/** An admin key without its text, which is shown once and never stored (contract, "Authentication"). */
export type AdminKey = {
  /** adm_… */
  id: string
  name: string
  /** By which its owner knows it. */
  lastFour: string
  createdAt: string
  lastUsedAt: string | null
  revokedAt: string | null
}

/** An admin key as only the call that makes it shows it. */
export type NewAdminKey = AdminKey & { key: string }
