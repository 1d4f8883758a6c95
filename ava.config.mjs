// Node runs the TypeScript as it is; a process per file, because the Temporal SDK wants one of its own.
const config = {
  files: ['test/**/*.test.ts', '!test/helpers/**'],
  extensions: ['ts'],
  workerThreads: false,
  concurrency: 2,
  timeout: '5m',
}

export default config
