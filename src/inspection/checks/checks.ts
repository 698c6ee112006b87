import type { Problem } from '../report.ts'
import type { CertificateCheck, Snapshot, SnapshotCheck } from './check.ts'
import { contentChecks } from './content.ts'
import { fileChecks } from './files.ts'
import { kubeconfigChecks } from './kubeconfigs.ts'
import { checkForms } from './plain-pem.ts'
import { timeChecks } from './time.ts'
import { checkKey, objectChecks, treeChecks } from './trust.ts'

const ofEachCertificate: readonly CertificateCheck[] = [...timeChecks, ...contentChecks, checkKey]

const ofAll: readonly SnapshotCheck[] = [
  ...treeChecks,
  ...kubeconfigChecks,
  ...objectChecks,
  checkForms,
  ...fileChecks,
]

/** Returns all problems of the collected entries. */
export function problemsOf(snapshot: Snapshot): Problem[] {
  const problems: Problem[] = []
  const { certificates } = snapshot.collection
  // Not for…of, which creates an object for each of 90,000 steps until the loop is compiled.
  for (let i = 0; i < certificates.length; i++) {
    const entry = certificates[i]!
    const role = snapshot.roleOf(entry)
    for (let c = 0; c < ofEachCertificate.length; c++) {
      const found = ofEachCertificate[c]!(entry, role, snapshot)
      if (found === undefined) continue
      if (Array.isArray(found)) problems.push(...found)
      else problems.push(found)
    }
  }
  for (const check of ofAll) problems.push(...check(snapshot))
  return problems
}
