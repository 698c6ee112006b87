import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { recorded, recordedFolder } from './recorded.ts'

export interface RecordedFile {
  /** "odd-certs/zlint/x.pem" */
  readonly path: string
  readonly kind: 'certificate' | 'csr' | 'crl' | 'pkcs7' | 'pkcs12' | 'kubeconfig'
  /** What Go 1.26 says: its parser, and of requests their signature too. */
  readonly go?: boolean
  readonly go_error?: string
  /** What Node's X509Certificate says. */
  readonly node?: boolean
}

const manifest =
  recorded<Record<'odd' | 'good', (Omit<RecordedFile, 'path'> & { file: string })[]>>('manifest.json')

export const hasRecordedFiles = manifest !== undefined

/** Files of one collection, in the order of the manifest; none where the cases are absent. */
export function recordedFiles(collection: 'odd' | 'good'): RecordedFile[] {
  const entries = manifest?.[collection] ?? []
  return entries.map(({ file, ...entry }) => ({ ...entry, path: `${collection}-certs/${file}` }))
}

export function readRecorded(path: string): Buffer {
  return readFileSync(join(recordedFolder, path))
}
