import type { FileFacts, NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import type { Definition } from './definitions.ts'
import { callHttps } from './http-call.ts'
import { listeningOf } from './listening.ts'
import type { Site } from './site.ts'

// The Kubernetes version of a component. An API server reports it; for the others it is the image tag or the program's output.

const timeoutMs = 5_000

const version = /^v1\.\d{1,3}\.\d[\w.+-]{0,60}$/

/** Returns the version, as "v1.36.3"; undefined if it cannot be read. */
export async function componentVersion(
  site: Site,
  node: NodeAccess,
  { name, runsAs, argv, image }: Pick<Definition, 'name' | 'runsAs' | 'argv' | 'image'>,
  running: ProcessFacts | undefined,
): Promise<string | undefined> {
  const served =
    name === 'kube-apiserver' && running ? await servedVersion(site, node.name, running) : undefined
  return served ?? (runsAs === 'unit' ? await programVersion(node, argv[0]) : imageVersion(image))
}

/** Returns the tag of "registry.k8s.io/kube-scheduler:v1.36.3@sha256:…". The tags of kubeadm's images are always the version. */
export function imageVersion(image = ''): string | undefined {
  return known(/:([^:/@]+)(?:@[^@]*)?$/.exec(image)?.[1])
}

/**
 * Connects to this API server directly: behind a load balancer another one could respond. No credentials are needed, unless
 * anonymous requests are disabled.
 */
async function servedVersion(site: Site, node: string, { argv }: ProcessFacts): Promise<string | undefined> {
  const { host, port } = listeningOf(argv)
  try {
    const stream = site.dial(node, host, port)
    const { status, body } = await callHttps({ stream, path: '/version', timeoutMs })
    return status === 200
      ? known((JSON.parse(body) as { gitVersion?: unknown } | null)?.gitVersion)
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Runs the program that systemd starts, and only if no one but root can have put it there: kcert runs it as root. It never runs
 * /proc/PID/exe, since any user can start a process with a component's name.
 */
async function programVersion(node: NodeAccess, program = ''): Promise<string | undefined> {
  if (!program.startsWith('/')) return undefined
  try {
    const folders = [...program.matchAll(/\//g)].map(({ index }) => program.slice(0, index) || '/')
    const facts = await node.statFiles([...folders, program], { timeoutMs })
    if (!facts.every(isRoots) || facts.at(-1)?.found !== 'file') return undefined
    const { status, stdout } = await node.run([program, '--version'], { timeoutMs })
    const said = /^Kubernetes (\S+)\s*$/.exec(Buffer.from(stdout).toString('utf8'))?.[1]
    return status === 0 ? known(said) : undefined
  } catch {
    return undefined
  }
}

/** Returns true for an entry that only root, and members of root's group, can replace. */
function isRoots(facts: FileFacts): boolean {
  if (!('uid' in facts) || facts.uid !== 0) return false
  return (facts.mode & 0o002) === 0 && ((facts.mode & 0o020) === 0 || facts.gid === 0)
}

function known(text: unknown): string | undefined {
  return typeof text === 'string' && version.test(text) ? text : undefined
}
