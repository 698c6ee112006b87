import type { Part } from '../../phase.ts'
import { probe } from '../../proof.ts'
import {
  awaitExtension,
  forgetting,
  knowsByConfigMap,
  publishes,
  unprovenSchedulers,
} from '../../verifying.ts'

/** extension-apiserver-authentication never forgets a CA by itself; schedulers and aggregated API servers read it. */
export const publishedClientCas: Part = (seen, target) => {
  const extension = seen.extensionAuthentication
  if (extension === undefined) {
    // Deleted by this phase and not made again yet: who goes by it is proven afterwards.
    if (!seen.components.some(knowsByConfigMap)) return { gaps: [], steps: [] }
    const at = 'ConfigMap kube-system/extension-apiserver-authentication'
    return { gaps: [{ at, what: 'not there' }], steps: [awaitExtension(12, target, ['newCa'])] }
  }
  const olds = target.changes.map(({ oldCa }) => oldCa.digest)
  const unproven = unprovenSchedulers(seen, target)
  if (!publishes(extension, olds)) {
    return {
      gaps: unproven.map((subject) => ({
        at: 'at' in subject ? subject.at : '',
        what: 'not proven to refuse the old CA',
      })),
      steps: unproven.map((subject) => probe(12, subject)),
    }
  }
  return {
    gaps: [{ at: 'ConfigMap kube-system/extension-apiserver-authentication', what: 'publishes the old CA' }],
    steps: [
      forgetting(12, extension.version),
      awaitExtension(12, target, ['newCa']),
      ...unprovenSchedulers({ ...seen, evidence: new Map() }, target).map((subject) => probe(12, subject)),
    ],
  }
}
