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
  // Not for…of, which creates an object for each of 90,000 steps until the loop is compiled.
  snapshot.collection.certificates.forEach((entry) => {
    const role = snapshot.roleOf(entry)
    ofEachCertificate.forEach((check) => {
      const found = check(entry, role, snapshot)
      if (Array.isArray(found)) problems.push(...found)
      else if (found !== undefined) problems.push(found)
    })
  })
  for (const check of ofAll) problems.push(...check(snapshot))
  return problems
}
