import type { VersionReport } from './version-report.ts'

// Set by scripts/build.ts; absent when the sources run directly.
declare const KCERT_COMMIT: string | undefined

/** Returns what `kcert version` prints. */
export function versionReport(clientVersion: string): VersionReport {
  const commit = typeof KCERT_COMMIT === 'string' ? KCERT_COMMIT : ''
  return {
    apiVersion: 'kcert/v1',
    kind: 'Version',
    clientVersion,
    nodeVersion: process.version,
    platform: `${process.platform}/${process.arch}`,
    ...(commit !== '' && { gitCommit: commit }),
  }
}
