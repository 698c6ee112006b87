import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from './ports.ts'

/** A real OpenSSH server on the loopback, with its own keys, configuration and port. */
export interface Sshd {
  readonly port: number
  readonly identityFile: string
  /** An ssh_config with the hosts `node`, which is this server, and `behind`, which uses `node` as a jump host. */
  readonly configFile: string
  readonly log: string
  stop(): Promise<void>
}

const program = '/usr/sbin/sshd'

/** Why there can be no server here, in one line; undefined where there can. */
export const whyNoSshd = existsSync(program) ? undefined : 'no sshd here (apt-get install openssh-server)'

/** Starts a server with its files in this folder. */
export async function startSshd(folder: string): Promise<Sshd> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const at = (name: string): string => join(folder, name)
  for (const name of ['host_key', 'id']) makeKey(at(name))
  writeFileSync(at('authorized_keys'), readFileSync(at('id.pub')), { mode: 0o600 })
  const port = await freePort()
  writeFileSync(
    at('sshd_config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host_key')}`,
      `AuthorizedKeysFile ${at('authorized_keys')}`,
      `PidFile ${at('pid')}`,
      ...['PasswordAuthentication no', 'KbdInteractiveAuthentication no', 'UsePAM no', 'StrictModes no'],
      ...['PermitRootLogin yes', 'AllowTcpForwarding yes', 'MaxStartups 100', 'PrintMotd yes'],
    ].join('\n'),
  )
  writeFileSync(at('known_hosts'), `[127.0.0.1]:${port} ${publicKey(at('host_key'))}\n`)
  const common = `  User ${userInfo().username}\n  IdentityFile ${at('id')}\n  IdentitiesOnly yes\n  UserKnownHostsFile ${at('known_hosts')}\n  StrictHostKeyChecking yes\n`
  const host = `  HostName 127.0.0.1\n  Port ${port}\n${common}`
  writeFileSync(at('config'), `Host node jump\n${host}Host behind\n  ProxyJump jump\n${host}`)
  // Where root starts it, it wants this folder for its unprivileged half.
  if (userInfo().uid === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const child = spawn(program, ['-D', '-f', at('sshd_config'), '-E', at('log')], { stdio: 'ignore' })
  await untilListening(port, child, at('log'))
  return {
    port,
    identityFile: at('id'),
    configFile: at('config'),
    log: at('log'),
    stop: async () => {
      if (child.exitCode !== null) return
      const exited = new Promise((resolve) => child.once('exit', resolve))
      child.kill()
      await exited
    },
  }
}

export function makeKey(path: string): void {
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', path])
}

/** Type and key of a public key file, as known_hosts has them. */
export function publicKey(path: string): string {
  return readFileSync(`${path}.pub`, 'utf8').split(' ').slice(0, 2).join(' ')
}

async function untilListening(port: number, child: ChildProcess, log: string): Promise<void> {
  for (let tries = 0; tries < 4_800; tries++) {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${readFileSync(log, 'utf8')}`)
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    await wait(25)
  }
  throw new Error(`sshd does not listen: ${readFileSync(log, 'utf8')}`)
}
