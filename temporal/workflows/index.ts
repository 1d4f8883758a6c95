export { AutomationRun } from './automation-run.ts'
export { SubscriberImport } from './subscriber-import.ts'
