import type { Phase } from './phase.ts'
import { distribute } from './phases/01-distribute.ts'
import { publishBoth } from './phases/02-publish-both.ts'
import { awaitPublished } from './phases/03-await-published.ts'
import { restartPods } from './phases/04-restart-pods.ts'
import { trustBoth } from './phases/05-trust-both.ts'
import { schedulerTrustsBoth } from './phases/06-scheduler-trusts-both.ts'
import { renewKubeconfigs } from './phases/07-kubeconfigs.ts'
import { cloudControllerManager } from './phases/08-cloud-controller-manager.ts'
import { presentNew } from './phases/09-present-new.ts'
import { clusterInfo } from './phases/10-cluster-info.ts'
import { verify } from './phases/11-verify.ts'
import { dropOld } from './phases/12-drop-old.ts'

/** The phases in order. phase-table.ts describes each. */
export const playbook: readonly Phase[] = [
  distribute,
  publishBoth,
  awaitPublished,
  restartPods,
  trustBoth,
  schedulerTrustsBoth,
  renewKubeconfigs,
  cloudControllerManager,
  presentNew,
  clusterInfo,
  verify,
  dropOld,
]

/** Returns the phase with this number. Throws RangeError. */
export function phaseNumbered(number: number): Phase {
  const phase = playbook[number - 1]
  if (phase === undefined) throw new RangeError(`no phase ${number}`)
  return phase
}
