export { AutomationRun } from './automation-run.ts'
