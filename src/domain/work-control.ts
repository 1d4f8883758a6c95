/** Is told how far long work is, for whoever continues it, and returns whether the work has to stop. */
export type WorkControl<Progress> = { report: (progress: Progress) => void; isStopping: () => boolean }
