import type { Action, RestartComponent, Step } from './action.ts'

// How long things take, in seconds, as measured on the lab (kubeadm 1.36, 3 control planes and a worker on two cores). An
// estimate for a plan, never a deadline.

const apiServerRestart = 43
const staticPodRestart = 15
const serviceRestart = 2

/** From a ConfigMap to a pod's volume: 24–79 s. */
const volumes = 80

/** A restarted kubelet answers for its containers again after up to 11 s. */
const logs = 11

const waits = {
  published: 2,
  volumes,
  'pods-converged': 10,
  'pods-started': 10,
  serves: 0.3,
  'cluster-info-signed': 0.2,
  'extension-authentication': 0.5,
  leader: 2,
  available: 1,
  'node-ready': 2,
  'backends-ready': 10,
  instant: 0,
} as const

/** Returns how long these steps take, in seconds; lanes side by side, so many at once. */
export function durationOf(steps: readonly Step[], nowMs: number): number {
  return steps.reduce((sum, step) => {
    if (step.kind !== 'together') return sum + secondsOf(step, nowMs)
    const lanes = step.lanes.map((lane) => durationOf(lane.steps, nowMs))
    return sum + longestWay(lanes, step.atOnce)
  }, 0)
}

/** The next lane begins where one has ended. */
function longestWay(lanes: readonly number[], atOnce: number): number {
  const busyUntil = new Array<number>(Math.min(atOnce, lanes.length)).fill(0)
  for (const lane of lanes) {
    const first = busyUntil.indexOf(Math.min(...busyUntil))
    busyUntil[first]! += lane
  }
  return Math.max(0, ...busyUntil)
}

function secondsOf(action: Action, nowMs: number): number {
  switch (action.kind) {
    case 'write-file':
      return action.content.kind === 'requested' ? 0.5 : 0.3
    case 'patch-object':
      return 0.2
    case 'restart':
      return restartSeconds(action)
    case 'roll':
      return 1
    case 'wait':
      return action.until.kind === 'instant'
        ? Math.max(0, (action.until.atMs - nowMs) / 1000)
        : waits[action.until.kind]
    case 'probe':
      return probeSeconds(action.subject)
    case 'ask':
      return 0
  }
}

function restartSeconds({ how, process: id }: RestartComponent): number {
  if (how === 'service') return serviceRestart
  return id.endsWith('/kube-apiserver') ? apiServerRestart : staticPodRestart
}

function probeSeconds(subject: Extract<Action, { kind: 'probe' }>['subject']): number {
  if ('forMs' in subject) return subject.forMs / 1000
  return subject.kind === 'logs' ? logs : 0.4
}
