import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { recorded, recordedFolder } from './recorded.ts'

export interface RecordedFile {
  /** "odd-certs/zlint/x.pem" */
  readonly path: string
  readonly kind: 'certificate' | 'csr' | 'crl' | 'pkcs7' | 'pkcs12' | 'kubeconfig'
  /** The result of Go 1.26: its parser, and for requests also their signature. */
  readonly go?: boolean
  readonly go_error?: string
  /** The result of Node's X509Certificate. */
  readonly node?: boolean
}

const manifest =
  recorded<Record<'odd' | 'good', (Omit<RecordedFile, 'path'> & { file: string })[]>>('manifest.json')

export const hasRecordedFiles = manifest !== undefined

/** Returns the files of one collection, in the order of the manifest; none when the cases are missing. */
export function recordedFiles(collection: 'odd' | 'good'): RecordedFile[] {
  const entries = manifest?.[collection] ?? []
  return entries.map(({ file, ...entry }) => ({ ...entry, path: `${collection}-certs/${file}` }))
}

export function readRecorded(path: string): Buffer {
  return readFileSync(join(recordedFolder, path))
}
