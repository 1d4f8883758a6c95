type Environment = Record<string, string | undefined>

export declare const projectDirectory: string
export declare const temporalVersion: string
export declare function cacheDirectory(env?: Environment): string
export declare function cachedTemporal(env?: Environment): string
export declare function findTemporal(env?: Environment): string | undefined
export declare function findPostgres(): string | undefined
export declare function isExecutable(path: string): boolean
