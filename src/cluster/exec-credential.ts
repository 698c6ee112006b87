import { spawn } from 'node:child_process'
import { argumentVector, type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { filledText, isObject } from '../errors/is-object.ts'
import { killGroup } from '../system/process-group.ts'
import { unusable } from './kubeconfig-files.ts'
import { objectIn } from './malformed.ts'

// client.authentication.k8s.io: a program prints the credential of the user. client-node runs it without KUBERNETES_EXEC_INFO and
// without a terminal for prompts, so kcert runs it and passes the result to client-node.

type Fields = Readonly<Record<string, unknown>>

/** The parts of the calling process that a credential program needs. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdinIsTerminal: boolean
  /** Kills a program that runs, with the processes that it started. */
  readonly signal?: AbortSignal | undefined
}

export interface ExecCredential {
  readonly token?: string
  /** PEM. */
  readonly certificate?: string
  /** PEM. */
  readonly key?: string
  readonly expiresAt?: Date
}

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
const mostOutputBytes = 1024 * 1024

/**
 * Returns the credential that the program of a user prints. Its standard error goes to the terminal, as with kubectl. Its output
 * is secret and appears in no message. Throws KCERT_KUBECONFIG_UNUSABLE.
 */
export async function runCredentialProgram(
  exec: Fields,
  cluster: Fields,
  surroundings: Surroundings,
  kubectl: CommandLine,
): Promise<ExecCredential> {
  const command = typeof exec.command === 'string' ? exec.command : ''
  const apiVersion = String(exec.apiVersion ?? '')
  if (command === '')
    throw unusable('a credential program has no command', {
      next: commandLine`${embed(kubectl)} config view --minify`,
    })
  if (!versions.includes(apiVersion)) {
    throw unusable(`the credential program ${command} uses the apiVersion ${JSON.stringify(apiVersion)}`, {
      why: `clients support ${versions.join(' and ')}: install a newer version of ${command}, and change apiVersion in the kubeconfig`,
    })
  }
  const isInteractive = takesTerminal(exec, command, surroundings)
  const info = {
    apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: isInteractive,
      ...(exec.provideClusterInfo === true && { cluster: clusterInfo(cluster) }),
    },
  }
  const env = { ...surroundings.env, ...programEnv(exec), KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  const args = Array.isArray(exec.args) ? exec.args.map(String) : []
  const { signal } = surroundings
  const output = await outputOf({ command, args, env, isInteractive, hint: exec.installHint, signal })
  return credentialOf(output, command, apiVersion)
}

function takesTerminal(exec: Fields, command: string, { stdinIsTerminal }: Surroundings): boolean {
  // v1 requires the field. In v1beta1 the default is IfAvailable.
  const mode = exec.interactiveMode ?? 'IfAvailable'
  if (mode === 'Never') return false
  if (mode === 'IfAvailable') return stdinIsTerminal
  if (mode === 'Always' && stdinIsTerminal) return true
  throw unusable(`the credential program ${command} cannot be run`, {
    why:
      mode === 'Always'
        ? 'it needs a terminal (interactiveMode: Always), and standard input is not a terminal: run kcert at a terminal, or use a kubeconfig with a token or a certificate'
        : `its interactiveMode is ${JSON.stringify(mode)}`,
  })
}

/** ExecCredential spec.cluster. Its extension is the program's own configuration. */
function clusterInfo(cluster: Fields): Fields {
  const extensions = Array.isArray(cluster.extensions) ? cluster.extensions : []
  const own = extensions.find((one) => one?.name === 'client.authentication.k8s.io/exec')
  return {
    server: cluster.server,
    'tls-server-name': cluster['tls-server-name'],
    'insecure-skip-tls-verify': cluster['insecure-skip-tls-verify'],
    'certificate-authority-data': cluster['certificate-authority-data'],
    'proxy-url': cluster['proxy-url'],
    config: own?.extension,
  }
}

function programEnv(exec: Fields): Record<string, string> {
  const entries = Array.isArray(exec.env) ? exec.env : []
  return Object.fromEntries(entries.map((entry) => [String(entry?.name), String(entry?.value ?? '')]))
}

interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly isInteractive: boolean
  readonly hint: unknown
  readonly signal: AbortSignal | undefined
}

function outputOf({ command, args, env, isInteractive, hint, signal }: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(outOfTime(command))
    const chunks: Buffer[] = []
    let total = 0
    const child = spawn(command, args, {
      env,
      stdio: [isInteractive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
      detached: signal !== undefined,
    })
    const end = (): void => {
      killGroup(child)
      // A process that left the group may keep the pipe open.
      child.stdout.destroy()
      reject(outOfTime(command))
    }
    signal?.addEventListener('abort', end)
    child.stdout.on('data', (chunk: Buffer) => {
      total += chunk.length
      if (total > mostOutputBytes) child.kill('SIGKILL')
      else chunks.push(chunk)
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      const isAbsent = error.code === 'ENOENT'
      reject(
        unusable(`the credential program ${command} cannot be run`, {
          why: isAbsent ? 'command not found' : `${error.code ?? 'it did not start'}`,
          next: typeof hint === 'string' && hint !== '' ? hint : commandLine`command -v ${command}`,
        }),
      )
    })
    child.on('close', (code, killedBy) => {
      signal?.removeEventListener('abort', end)
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'))
      else {
        reject(
          unusable(`the credential program ${command} failed`, {
            why: code === null ? `it was killed by ${killedBy}` : `its exit code was ${code}`,
            next: commandLine`${argumentVector([command, ...args.map(shownArgument)])}`,
          }),
        )
      }
    })
  })
}

function outOfTime(command: string): Error {
  return unusable(`the credential program ${command} failed`, {
    why: 'it did not end in time and was killed',
  })
}

/**
 * Long base64, base64url or hexadecimal strings may be tokens, keys or passwords. So may the value after a word such as "token".
 */
function withoutSecret(text: string): string {
  return text
    .replace(/((?:token|secret|password|passwd|key|bearer|authorization)\S*?[=:\s]\s*)\S+/gi, '$1…')
    .replace(/[\w+/=.-]{32,}/g, '…')
}

function shownArgument(argument: string, index: number, all: readonly string[]): string {
  return /^-.*(?:token|secret|password|key)$/i.test(all[index - 1] ?? '') ? '…' : withoutSecret(argument)
}

function credentialOf(output: string, command: string, apiVersion: string): ExecCredential {
  // JSON.parse quotes its input in its error message, and the input is a secret.
  const answer = objectIn(output)
  const status = isObject(answer?.status) ? answer.status : {}
  const text = (field: string): string | undefined => filledText(status[field])
  const token = text('token')
  const certificate = text('clientCertificateData')
  const key = text('clientKeyData')
  const wrong =
    answer === undefined
      ? 'it printed what is not JSON'
      : answer.apiVersion !== apiVersion
        ? `it printed another apiVersion than ${apiVersion}`
        : (certificate === undefined) !== (key === undefined)
          ? 'it printed a certificate or a key, and not both'
          : token === undefined && key === undefined
            ? 'it printed neither a token nor a certificate'
            : undefined
  if (wrong !== undefined)
    throw unusable(`the credential program ${command} returned no credential`, { why: wrong })
  const expires = new Date(text('expirationTimestamp') ?? Number.NaN)
  const expiresAt = Number.isNaN(expires.getTime()) ? undefined : expires
  return given({ token, certificate, key, expiresAt })
}
