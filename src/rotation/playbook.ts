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

// Kubernetes' "Manual Rotation of CA Certificates", step by step: https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/
//
// One law holds for the whole: a verifier trusts before a presenter presents, a presenter stops before a verifier distrusts, and
// clients change before servers.

export const playbook: readonly Phase[] = [
  distribute, //             1  lay out the new CA on every control-plane node, and copies of all that will change
  publishBoth, //            2  controller-managers publish both CAs and go on signing with the old one
  awaitPublished, //         3  every namespace and every service account has both CAs
  restartPods, //            4  pods with in-cluster configuration know both CAs
  trustBoth, //              5  API servers and kubelets accept clients of both CAs, and whoever joins trusts both
  schedulerTrustsBoth, //    6  schedulers and controller-managers accept clients of both CAs
  renewKubeconfigs, //       7  kubeconfigs hold both CAs and a new client certificate; controller-managers sign with the new CA
  cloudControllerManager, // 8  cloud-controller-managers publish both CAs
  presentNew, //             9  whoever presents a certificate of the old CA presents one of the new CA
  clusterInfo, //           10  whoever joins meets the new CA first, with an old pin or a new one
  verify, //                11  nothing presents the old CA, and nobody meets a TLS error
  dropOld, //               12  nobody trusts the old CA any more, and the cluster is as kubeadm would have made it
]

/** Returns the phase of that number, 1 to 12. */
export function phaseNumbered(number: number): Phase {
  const phase = playbook[number - 1]
  if (phase === undefined) throw new RangeError(`no phase ${number}`)
  return phase
}
