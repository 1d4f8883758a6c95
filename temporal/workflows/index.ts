export { AutomationRun } from './automation-run.ts'
export { SubscriberImport } from './subscriber-import.ts'
export { SegmentRefresh } from './segment-refresh.ts'
export { CampaignSend } from './campaign-send.ts'
