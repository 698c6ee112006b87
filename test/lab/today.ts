import { spawnSync } from 'node:child_process'
import { defaultMinor, type Minor, minors } from './spec.ts'
import { folders } from './state.ts'

// The suites of a CI run by day. A run has an hour on two busy cores, on a machine without caches, which is not enough for every
// suite.

/** A suite that CI skips when its time does not suffice. */
interface Suite {
  readonly name: string
  /** Its duration on two busy cores, including its cluster. */
  readonly minutes: number
  /** Folders and files of the checkout. A change in them moves the suite to the front. */
  readonly proves: readonly string[]
}

/** On each day, one turn has priority. Each turn fits into a day on which only the newest minor version is tested. */
export const turns: readonly (readonly Suite[])[] = [
  [
    {
      name: 'rotation-resume',
      minutes: 13,
      proves: ['src/app/rotate-ca', 'src/rotation', 'src/rotation-io'],
    },
    {
      name: 'guides',
      minutes: 5,
      proves: ['docs/guides', 'src/bootstrap', 'src/ca', 'src/kubelet', 'src/output', 'src/probe'],
    },
  ],
  [
    {
      name: 'bootstrap',
      minutes: 4,
      proves: ['src/app/bootstrap', 'src/app/cluster-info', 'src/app/token', 'src/bootstrap'],
    },
    { name: 'csr-life', minutes: 3, proves: ['src/app/csr', 'src/cluster', 'src/csr'] },
    {
      name: 'probe',
      minutes: 3,
      proves: [
        'docs/guides/monitoring.md',
        'src/app/inspect',
        'src/app/probe',
        'src/inspection',
        'src/probe',
        'src/tls',
      ],
    },
    {
      name: 'renew',
      minutes: 4,
      proves: ['src/app/renew', 'src/ca', 'src/kubelet', 'src/pki', 'src/renewal-io'],
    },
    { name: 'rotation-ports', minutes: 2, proves: ['src/rotation-io', 'src/site', 'test/contract'] },
  ],
  [
    {
      name: 'approval',
      minutes: 4,
      proves: ['docs/guides/approve-kubelet-serving.md', 'src/app/csr', 'src/csr/approval'],
    },
    { name: 'csr-faults', minutes: 3, proves: ['src/cluster', 'src/csr'] },
    {
      name: 'lab',
      minutes: 5,
      proves: ['cluster.ts', 'kubeadm.ts', 'node.ts', 'save.ts', 'addons', 'go'].map(
        (name) => `test/lab/${name}`,
      ),
    },
    { name: 'rotation-observer', minutes: 4, proves: ['src/node', 'src/pki', 'src/rotation-io', 'src/site'] },
  ],
  [
    { name: 'renew-three', minutes: 10, proves: ['src/app/renew', 'src/ca', 'src/renewal-io'] },
    { name: 'kubelet-manage', minutes: 4, proves: ['src/app/kubelet', 'src/kubelet', 'src/pki'] },
  ],
]

const minutesOfRun = 60
/** npm ci and the build; the unit tests; packages, images and suites without a cluster; the whole rotation; the API contract. */
const minutesOfTheRest = 1 + 12 + 1 + 12 + 2
/** Builds Kubernetes of one minor version from its Go modules. */
const minutesOfBuild = 14

const dayMs = 86_400_000

/**
 * Returns the start time of this run, for all its processes. `npm test` sets `KCERT_LAB_DAY`. Set it to another day to repeat
 * that day's run.
 */
export function today(environment: NodeJS.ProcessEnv = process.env): Date {
  return new Date(environment.KCERT_LAB_DAY ?? Date.now())
}

/**
 * Returns the minor version for the whole rotation and the API contract: in CI the newest every other day, and on the days
 * between each older one in turn.
 */
export function minorOfDay(date = today(), environment: NodeJS.ProcessEnv = process.env): Minor {
  const day = dayOf(date)
  if (environment.CI === undefined || environment.KCERT_LAB_MINOR !== undefined || day % 2 === 0)
    return defaultMinor
  const older = minors.slice(0, -1)
  return older[((day - 1) / 2) % older.length]!
}

/** A suite that a CI run skips, and why. */
interface LeftOut {
  readonly name: string
  readonly why: string
}

/**
 * Returns the suites that CI skips on a day (UTC); none if `KCERT_WHOLE` is set, as by `npm test -- --whole`. Suites for changes
 * of the last day have priority, then the day's turn, within the time limit. `changed` returns undefined where changes are
 * unknown.
 */
export function leftOutOn(
  date = today(),
  environment: NodeJS.ProcessEnv = process.env,
  changed: (date: Date) => readonly string[] | undefined = changedFiles,
): readonly LeftOut[] {
  if (environment.CI === undefined || environment.KCERT_WHOLE !== undefined) return []
  const files = changed(date)
  const isChanged = ({ name, proves }: Suite): boolean =>
    files === undefined ||
    [...proves, `test/lab/${name}.test.ts`].some((path) =>
      files.some((file) => file === path || file.startsWith(`${path}/`)),
    )
  const turn = Math.floor(dayOf(date) / 2) % turns.length
  const inTurn = [...turns.slice(turn), ...turns.slice(0, turn)].flat()
  const builds = minorOfDay(date, environment) === defaultMinor ? 1 : 2
  let left = minutesOfRun - minutesOfTheRest - builds * minutesOfBuild
  return [...inTurn.filter(isChanged), ...inTurn.filter((suite) => !isChanged(suite))].flatMap((suite) => {
    if (suite.minutes <= left) {
      left -= suite.minutes
      return []
    }
    const why = isChanged(suite)
      ? `its ${suite.minutes} minutes do not fit into today's ${minutesOfRun}`
      : `what it proves did not change since yesterday, and its ${suite.minutes} minutes do not fit into today's ${minutesOfRun}`
    return [{ name: suite.name, why }]
  })
}

function dayOf(date: Date): number {
  return Math.floor(date.getTime() / dayMs)
}

/** Returns files that differ from the newest commit that is at least a day old; undefined without git or such a commit. */
function changedFiles(date: Date): readonly string[] | undefined {
  const before = new Date(date.getTime() - dayMs).toISOString()
  const commit = git('rev-list', '-1', `--before=${before}`, 'HEAD')?.trim()
  if (commit === undefined || commit === '') return undefined
  return git('diff', '--relative', '--name-only', '--no-renames', '-z', commit)?.split('\0')
}

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: folders.checkout, encoding: 'utf8' })
  return status === 0 ? stdout : undefined
}
