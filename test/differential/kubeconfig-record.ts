import { join } from 'node:path'

/** client-go 0.36.3's answers to each of kubeconfigCases(), one per line. */
export const recordFile = join(import.meta.dirname, 'client-go-answers.txt')
