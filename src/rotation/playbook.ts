import { impactOf } from './impact.ts'
import { brokenConnection, modelSections } from './model/check.ts'
import { type Phase, type Playbook, phaseOf } from './phase.ts'
import { manualRotation } from './phase-table.ts'
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
import { positionOf } from './position.ts'
import { preflight, unseenNodes } from './refusals.ts'
import { sectionNames } from './snapshot.ts'
import { targetOf, targetSections } from './target-reading.ts'
import { revertedPhases } from './upgrades.ts'

/** The page's phases in order. phase-table.ts describes each. */
export const playbook: Playbook = {
  ...manualRotation,
  phases: [
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
  ],
  sections: sectionNames,
  targetSections,
  modelSections,
  targetOf,
  check: brokenConnection,
  preflight,
  unseenNodes,
  positionOf,
  revertedPhases,
  impactOf,
}

/** Returns the page's phase with this number. Throws RangeError. */
export function phaseNumbered(number: number): Phase {
  return phaseOf(playbook, number)
}
