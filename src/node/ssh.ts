import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemCode } from '../errors/caught.ts'
import { argumentVector, type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { startProcess } from '../system/running-program.ts'
import { checkSshConfig } from '../system/trusted-file.ts'
import { shellWord } from './protocol.ts'
import { lastLines } from './session.ts'
import { explainSudo } from './sudo.ts'
import { type Become, shellVector, type Transport, type TransportEnd } from './transport.ts'

/** How OpenSSH reaches a node. Other settings come from the user's own ssh_config: user, keys, agents, jump hosts. */
export interface SshTarget {
  /** A name, an address, or a Host of ssh_config. */
  readonly host: string
  readonly user?: string
  readonly port?: number
  readonly identityFile?: string
  /** Used instead of ~/.ssh/config. */
  readonly configFile?: string
  readonly become?: Become
}

/** The connections of one run of kcert: a private folder with the control sockets of their masters. */
export interface SshConnections {
  transport(target: SshTarget): Transport
  /** Ends every remaining master, and removes the folder. */
  close(): Promise<void>
}

// A socket's path has at most 104 bytes on some systems, and ssh appends 17 while it creates one.
const longestSocketPath = 104 - 17

// A master that a killed kcert left exits after this time.
const persistSeconds = 30

/**
 * Returns connections that share nothing with other connections of this user. The first connection creates the folder with mode
 * 0700.
 */
export function sshConnections(): SshConnections {
  let folder: string | undefined
  let count = 0
  const open = new Set<Transport>()
  const socketPath = (): string => {
    folder ??= mkdtempSync(join(tmpdir().length > 40 ? '/tmp' : tmpdir(), 'kcert-ssh-'))
    return join(folder, `${++count}`)
  }
  return {
    transport: (target) => {
      const transport = sshTransport(target, socketPath(), () => open.delete(transport))
      open.add(transport)
      return transport
    },
    close: async () => {
      await Promise.all([...open].map((transport) => transport.close()))
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
      folder = undefined
    },
  }
}

function sshTransport(target: SshTarget, socket: string, onClose: () => void): Transport {
  if (target.configFile !== undefined) checkSshConfig(target.configFile)
  const destination = [
    ...(target.configFile === undefined ? [] : ['-F', target.configFile]),
    ...(target.user === undefined ? [] : ['-l', target.user]),
    ...(target.port === undefined ? [] : ['-p', `${target.port}`]),
    ...(target.identityFile === undefined ? [] : ['-i', target.identityFile]),
  ]
  const title = commandLine`ssh ${argumentVector([...destination, target.host])}`
  // A host that begins with a dash would be parsed as an option.
  const host = ['--', target.host]
  const multiplexed = socket.length <= longestSocketPath
  return {
    title,
    start: async (script) =>
      startProcess([
        'ssh',
        ...destination,
        ...options,
        ...(multiplexed ? [...sharing, '-o', `ControlPath=${socket}`] : []),
        ...host,
        // The login shell on the node gets one line, and is replaced by sh.
        `exec ${shellVector(script, target.become).map(shellWord).join(' ')}`,
      ]),
    explain: (end) => explainSudo(title, end) ?? explainSsh(target.host, title, end),
    close: async () => {
      onClose()
      if (multiplexed)
        await quietly(['ssh', ...destination, '-o', `ControlPath=${socket}`, '-O', 'exit', ...host])
    },
  }
}

const options = [
  // ssh never prompts on a terminal, and the node gets nothing of the user's session (agent, X11).
  ...['-T', '-a', '-x', '-o', 'BatchMode=yes', '-o', 'ClearAllForwardings=yes', '-o', 'RemoteCommand=none'],
  ...['-o', 'RequestTTY=no', '-o', 'LogLevel=ERROR', '-o', 'ConnectTimeout=10'],
  // A node that drops off the network is detected after 15 s.
  ...['-o', 'ServerAliveInterval=5', '-o', 'ServerAliveCountMax=3'],
]

const sharing = ['-o', 'ControlMaster=auto', '-o', `ControlPersist=${persistSeconds}`]

function quietly(argv: readonly string[]): Promise<void> {
  const [program = '', ...args] = argv
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: 'ignore', timeout: 5_000 })
    child.once('error', () => resolve())
    child.once('exit', () => resolve())
  })
}

interface SshFailure {
  readonly words: RegExp
  readonly tell: (host: string, title: CommandLine) => KcertError
}

// OpenSSH's messages, which are not translated.
const failures: readonly SshFailure[] = [
  {
    words: /REMOTE HOST IDENTIFICATION HAS CHANGED|host key .*has changed|Host key for .* has changed/i,
    tell: (host, title) =>
      new KcertError('KCERT_NODE_UNTRUSTED', `the host key of ${host} changed`, {
        why: 'the machine was reinstalled, or another one answers at its address; kcert sent nothing. Compare the fingerprint with the one that "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" prints on that machine before you accept the new key',
        next: commandLine`ssh-keygen -R ${host} && ${embed(title)}`,
      }),
  },
  {
    words: /Host key verification failed/,
    tell: (host, title) =>
      new KcertError('KCERT_NODE_UNTRUSTED', `the host key of ${host} is not known`, {
        why: 'no known_hosts file contains it: connect once, and compare the fingerprint before you accept it',
        next: commandLine`${embed(title)}`,
      }),
  },
  {
    words: /Permission denied \(|Too many authentication failures|no mutual signature/,
    tell: (host, title) =>
      new KcertError('KCERT_NODE_REFUSED', `${host} rejects the SSH login`, {
        why: 'it accepts none of the keys that ssh offers, and kcert does not use passwords',
        next: commandLine`${embed(title)} -v true`,
      }),
  },
]

function explainSsh(
  host: string,
  title: CommandLine,
  { stderr, cause, status }: TransportEnd,
): KcertError | undefined {
  if (systemCode(cause) === 'ENOENT') {
    return new KcertError('KCERT_USAGE', '"ssh" is not installed', {
      why: 'kcert connects to nodes with the OpenSSH client (package openssh-client or openssh-clients)',
      cause,
    })
  }
  const recognized = failures.find(({ words }) => words.test(stderr))
  if (recognized !== undefined) return recognized.tell(host, title)
  // 255 is a failure of ssh itself: unknown name, refused, no route, no response.
  if (status !== 255 || stderr === '') return undefined
  return new KcertError('KCERT_NODE_UNREACHABLE', `cannot connect to ${host} by SSH`, {
    why: lastLines(stderr),
    next: commandLine`${embed(title)} true`,
  })
}
