import { spawnSync } from 'node:child_process'
import { defaultMinor, type Minor, minors } from './spec.ts'
import { folders } from './state.ts'

// What a CI run does on its day. It has an hour on two busy cores, from a machine without caches: not enough for every suite.

/** A suite that CI leaves out where its time is up. */
interface Suite {
  readonly name: string
  /** What it takes on two busy cores, its cluster included. */
  readonly minutes: number
  /** Folders and files of the checkout: a change below them puts the suite first. */
  readonly proves: readonly string[]
}

/** On a day one turn goes first. Each of them fits into a day on which the newest minor is the only one. */
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
/** Kubernetes of one minor, from its Go modules. */
const minutesOfBuild = 14

const dayMs = 86_400_000

/** When this run began, for all its processes: `npm test` sets `KCERT_LAB_DAY`, and whoever wants the run of another day. */
export function today(environment: NodeJS.ProcessEnv = process.env): Date {
  return new Date(environment.KCERT_LAB_DAY ?? Date.now())
}

/** The minor that the whole rotation and the API contract run on: in CI the newest every other day, between them each older one in turn. */
export function minorOfDay(date = today(), environment: NodeJS.ProcessEnv = process.env): Minor {
  const day = dayOf(date)
  if (environment.CI === undefined || environment.KCERT_LAB_MINOR !== undefined || day % 2 === 0)
    return defaultMinor
  const older = minors.slice(0, -1)
  return older[((day - 1) / 2) % older.length]!
}

/** A suite that a CI run leaves out, and why. */
interface LeftOut {
  readonly name: string
  readonly why: string
}

/**
 * The suites that CI leaves out on a day (UTC); none where `KCERT_WHOLE` is set, as `npm test -- --whole` does. What changed within
 * the last day goes first, then the day's turn, as far as the time goes. `changed` returns undefined where that cannot be found out.
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

/** Files that differ from the newest commit that is a day old; undefined where git, or so old a commit, is not there. */
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
