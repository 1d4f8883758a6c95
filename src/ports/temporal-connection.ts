import { InterceptingCall, type Interceptor, status, type StatusObject } from '@grpc/grpc-js'
import { Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client'

import type { Config } from '../config.ts'

/**
 * Returns a connection to Temporal that opens on first use; `connectTimeout` is in milliseconds. Rejects a request that
 * is made, or repeated, after the connection was closed with the gRPC status CANCELLED.
 */
export function createTemporalConnection(config: Config['temporal'], connectTimeout: number): Connection {
  return Connection.lazy({
    address: config.address,
    ...(config.tls && { tls: true }),
    ...(config.apiKey && { apiKey: config.apiKey }),
    connectTimeout,
    interceptors: [makeGrpcRetryInterceptor(defaultGrpcRetryOptions()), answerWhatCannotStart],
  })
}

/**
 * Makes a status of what gRPC throws for a call that cannot start. The client's retries run in timers, where it would
 * end the process: after a close, each request that waits to be repeated.
 */
const answerWhatCannotStart: Interceptor = (options, nextCall) => {
  try {
    return new InterceptingCall(nextCall(options))
  } catch (error) {
    const details = error instanceof Error ? error.message : String(error)
    return new InterceptingCall(endedCall({ code: status.CANCELLED, details }))
  }
}

function endedCall(ending: Omit<StatusObject, 'metadata'>): ReturnType<Parameters<Interceptor>[1]> {
  return {
    start(metadata, listener) {
      listener?.onReceiveMessage?.(null)
      listener?.onReceiveStatus?.({ ...ending, metadata })
    },
    getPeer: () => '',
    getAuthContext: () => null,
    sendMessageWithContext() {},
    sendMessage() {},
    startRead() {},
    halfClose() {},
    cancelWithStatus() {},
  }
}
