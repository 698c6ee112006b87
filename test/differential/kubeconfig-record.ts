import { join } from 'node:path'

/** What client-go 0.36.3 answers to each of kubeconfigCases(), one a line. */
export const recordFile = join(import.meta.dirname, 'client-go-answers.txt')
