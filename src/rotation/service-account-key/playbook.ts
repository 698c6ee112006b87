import { noRadius } from '../impact.ts'
import type { Playbook } from '../phase.ts'
import { fileAt } from '../snapshot.ts'
import { keysIn, keyTargetOf, keyTargetSections, privatePath, signers } from './keys.ts'
import { brokenTokens, keyModelSections } from './model.ts'
import { keyRotation } from './phase-table.ts'
import { createKey } from './phases/1-create-key.ts'
import { verifyBoth } from './phases/2-verify-both.ts'
import { awaitVerifiers } from './phases/3-await-verifiers.ts'
import { signNew } from './phases/4-sign-new.ts'
import { renewTokens } from './phases/5-renew-tokens.ts'
import { proveUnused } from './phases/6-prove-unused.ts'
import { dropOld } from './phases/7-drop-old.ts'
import { finish } from './phases/8-finish.ts'
import { keyPreflight, unseenNodes } from './refusals.ts'

/** The rotation of the service account key. phase-table.ts describes each phase. */
export const keyPlaybook: Playbook = {
  ...keyRotation,
  phases: [createKey, verifyBoth, awaitVerifiers, signNew, renewTokens, proveUnused, dropOld, finish],
  sections: [
    ...keyTargetSections,
    ...(['servedKeys', 'tokens', 'pods', 'kubeconfigs', 'kubeadm', 'leases', 'backends'] as const),
    ...(['copies', 'evidence'] as const),
  ],
  targetSections: keyTargetSections,
  modelSections: [...keyModelSections, 'kubeadm', 'kubeconfigs'],
  targetOf: keyTargetOf,
  check: brokenTokens,
  preflight: keyPreflight,
  unseenNodes,
  positionOf(observed, target) {
    if (target.isDropping) return 'removing'
    const news = signers(observed).flatMap((one) => keysIn(fileAt(observed, one.node, privatePath(one))))
    return news.some((key) => key === target.key?.newKey) ? 'reissuing' : 'preparing'
  },
  revertedPhases: () => new Map(),
  impactOf: () => ({ trustHolders: [], credentialHolders: [], assumptions: [], blastRadius: noRadius }),
}
