import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { commandTransport } from '../../src/node/command.ts'
import { localTransport } from '../../src/node/local.ts'
import { bootstrap, nodeScript } from '../../src/node/node-script.ts'
import { encodeContent } from '../../src/node/protocol.ts'
import { shellNode } from '../../src/node/shell-node.ts'
import { sshConnections } from '../../src/node/ssh.ts'
import type { Transport } from '../../src/node/transport.ts'
import type { NodeAccess } from '../../src/pki/node-access.ts'
import { systemClock } from '../../src/system/clock.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'
import { isRunning, sha256, until } from './contract.ts'
import { deadPort } from './ports.ts'
import { makeKey, publicKey, type Sshd, startSshd, whyNoSshd } from './sshd.ts'

const folder = temporaryFolder('node-faults')
const isRoot = userInfo().uid === 0
const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
const nodeBy = (transport: Transport): NodeAccess => shellNode({ name: 'cp1', transport, clock: systemClock })
const replaces = 'anything'

/** Runs the bare script with this input and returns when its shell has exited. */
async function shell(input: string): Promise<void> {
  const child = spawn('sh', ['-c', bootstrap], { stdio: ['pipe', 'ignore', 'ignore'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const script = nodeScript('mark')
  child.stdin.end(`${Buffer.byteLength(script)}\n${script}${input}`)
  await ended
}

describe('lost connection', () => {
  test('keeps the old file when a write is cut off at any byte', async () => {
    const here = join(folder, 'cut')
    mkdirSync(here)
    const path = join(here, 'ca.crt')
    writeFileSync(path, 'old')
    const content = 'x'.repeat(1000)
    const encoded = encodeContent(content)
    const words = `kc_write '${path}' 'n' 'sum:${sha256('old')}' '${sha256(content)}' '' '' ''`
    const request = `1 ${encoded.length} ${words}\n${encoded}`
    for (let length = 0; length < request.length; length += 97) {
      await shell(request.slice(0, length))
      await until(() => !readdirSync(here).some((name) => name.endsWith('.kcert-tmp')))
      expect(readFileSync(path, 'utf8')).toBe('old')
    }
    await shell(request)
    await until(() => readFileSync(path, 'utf8') === content)
    expect(readdirSync(here)).toEqual(['ca.crt'])
  })

  test('leaves the old or the new file when the shell is killed during a write', async () => {
    const here = join(folder, 'killed')
    mkdirSync(here)
    const path = join(here, 'ca.crt')
    const contents = ['a', 'b'].map((letter) => letter.repeat(200_000))
    writeFileSync(path, contents[0]!)
    let interrupted = 0
    for (let round = 0; round < 30; round++) {
      const child = spawn('sh', ['-c', bootstrap], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
      const ended = new Promise((resolve) => child.once('exit', resolve))
      const content = contents[(round + 1) % 2]!
      const script = nodeScript('mark')
      const encoded = encodeContent(content)
      child.stdin.on('error', () => {})
      child.stdin.write(
        `${Buffer.byteLength(script)}\n${script}1 ${encoded.length} kc_write '${path}' 'n${round}' 'any' '${sha256(content)}' '' '' ''\n${encoded}`,
      )
      await new Promise((resolve) => setTimeout(resolve, 5 + round * 3))
      process.kill(-child.pid!, 'SIGKILL')
      await ended
      const found = readFileSync(path, 'utf8')
      expect(contents).toContain(found)
      if (found !== content) interrupted++
    }
    expect(interrupted).toBeGreaterThan(0)
  })

  test('repeats a read and a change once after a lost connection, and runs no program again', async () => {
    const marker = join(folder, 'died-once')
    // The first shell exits at its first request.
    const dying = `[ -e ${marker} ] && exec "$@"; : >${marker}; exec sh -c 'IFS= read -r n; s=$(head -c "$n"); eval "kc_end() { :; }; $(printf %s "$s" | sed "s/^while IFS.*/read -r x; exit 7; while false/")"'`
    const path = join(folder, 'f')
    for (const act of [
      (node: NodeAccess) => node.statFiles(['/']),
      (node: NodeAccess) => node.writeFile(path, 'x', { replaces: 'absent' }),
      (node: NodeAccess) => node.removeFile(path, { holds: { sha256: sha256('x') } }),
    ]) {
      const node = nodeBy(commandTransport(['sh', '-c', dying, 'sh']))
      await act(node)
      await node.close()
      execFileSync('rm', [marker])
    }
    expect(existsSync(path)).toBe(false)
    const other = nodeBy(commandTransport(['sh', '-c', dying, 'sh']))
    await expect(other.run(['touch', path])).rejects.toMatchObject({ code: 'KCERT_NODE_UNREACHABLE' })
    expect(existsSync(path)).toBe(false)
    await other.close()
  })

  test('a change whose answer was lost is not made again, and replaces nothing that changed since then', async () => {
    const marker = join(folder, 'answered-once')
    const path = join(folder, 'lost-answer')
    // The first shell writes the file, runs a command, and dies before it answers.
    const dying = (command: string) =>
      `[ -e ${marker} ] && exec "$@"; : >${marker}; exec sh -c 'IFS= read -r n; s=$(head -c "$n"); eval "$(printf %s "$s" | sed "s|^  printf .%s %s.*|  ${command}; kill -9 \\$\\$; sleep 1|")"'`
    const options = { replaces: { sha256: sha256('old') } }
    writeFileSync(path, 'old')
    const node = nodeBy(commandTransport(['sh', '-c', dying(':'), 'sh']))
    expect(await node.writeFile(path, 'new', options)).toMatchObject({ changed: false })
    expect(readFileSync(path, 'utf8')).toBe('new')
    await node.close()
    execFileSync('rm', [marker])
    writeFileSync(path, 'old')
    const other = nodeBy(commandTransport(['sh', '-c', dying(`echo theirs >${path}`), 'sh']))
    await expect(other.writeFile(path, 'new', options)).rejects.toMatchObject({
      code: 'KCERT_NODE_FILE_CHANGED',
    })
    expect(readFileSync(path, 'utf8')).toBe('theirs\n')
    await other.close()
  })

  test('an answer that does not say what a change did is an error', async () => {
    const mute = `exec sh -c 'IFS= read -r n; eval "$(head -c "$n" | sed "s|^while IFS|kc_write() { :; }; kc_link() { :; }; kc_remove() { :; }; kc_rmdir() { :; }; &|")"'`
    const node = nodeBy(commandTransport(['sh', '-c', mute, 'sh']))
    const path = join(folder, 'mute')
    for (const change of [
      () => node.writeFile(path, 'x', { replaces }),
      () => node.linkFile(path, 'x', { replaces }),
      () => node.removeFile(path, { holds: replaces }),
      () => node.removeFolder(path),
    ]) {
      await expect(change()).rejects.toMatchObject({
        code: 'KCERT_NODE_FILE_NOT_WRITTEN',
        why: 'the shell did not say what it changed',
      })
    }
    await node.close()
  })

  test('ends a shell that is still starting when the node is closed', async () => {
    const argv = ['sleep', '987.125']
    const node = nodeBy(commandTransport(['sh', '-c', `${argv.join(' ')}; exec "$@"`, 'sh']))
    const answer = expect(node.identity()).rejects.toMatchObject({ code: 'KCERT_NODE_UNREACHABLE' })
    await until(() => isRunning(argv))
    await node.close()
    await answer
    await until(() => !isRunning(argv))
  })

  test('ignores or rejects noise in the middle of an answer', async () => {
    const noisy = `(i=0; while [ $i -lt 300 ]; do echo AAAAAAAA; i=$((i+1)); sleep 0.01; done) & exec "$@"`
    const node = nodeBy(commandTransport(['sh', '-c', noisy, 'sh']))
    const content = randomBytes(500_000)
    writeFileSync(join(folder, 'large'), content)
    for (let round = 0; round < 10; round++) {
      // The answer is read completely or rejected, never altered.
      const read = await node.readFiles([join(folder, 'large')]).catch((error: unknown) => error)
      if (Array.isArray(read)) expect(read).toMatchObject([{ sha256: sha256(content) }])
      else expect(read).toMatchObject({ code: 'KCERT_NODE_UNREACHABLE' })
    }
    await node.close()
  })
})

describe('secrets', () => {
  test('a key is in no argument, environment or world-readable file', async () => {
    const here = join(folder, 'canary')
    mkdirSync(here, { mode: 0o755 })
    const canary = `canary${randomBytes(12).toString('hex')}`
    const encoded = Buffer.from(canary).toString('base64').slice(0, 40)
    const watcher = spawn('python3', ['-c', watching, here, canary.slice(0, 20), encoded], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    watcher.stdin.end()
    let printed = ''
    watcher.stdout.on('data', (text: Buffer) => {
      printed += text.toString()
    })
    await until(() => printed.includes('ready'))
    const node = nodeBy(localTransport())
    // If the watcher gets little CPU time, the test writes for longer.
    for (let round = 0; round < 60 || !printed.includes('often'); round++) {
      await node.writeFile(join(here, 'ca.key'), `${canary}${round}`, { replaces, mode: 0o600 })
      await node.run(['sh', '-c', 'cat >/dev/null'], { stdin: canary })
    }
    await node.close()
    writeFileSync(join(here, 'stop'), '')
    await until(() => printed.includes('done'))
    // "done SIGHTINGS": the watcher scanned /proc more than twenty times and never saw the key.
    const [, ...sightings] = printed.trim().split('\n').at(-1)!.split(' ')
    expect(sightings).toEqual([])
  })
})

const watching = `
import os, sys
here, *words = sys.argv[1:]
words = [w.encode() for w in words]
me = str(os.getpid())
print("ready", flush=True)
rounds, seen = 0, set()
while not os.path.exists(here + "/stop"):
    rounds += 1
    if rounds == 21: print("often", flush=True)
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or pid == me: continue
        for name in ("cmdline", "environ"):
            try: text = open("/proc/%s/%s" % (pid, name), "rb").read()
            except OSError: continue
            if any(w in text for w in words) and words[0] + b"\\0" not in text: seen.add(name)
    for name in os.listdir(here):
        try: mode = os.stat(here + "/" + name).st_mode
        except OSError: continue
        if name != "stop" and mode & 0o077: seen.add("mode-of-" + name)
print("done", *sorted(seen), flush=True)
`

describe('unusable node', () => {
  test('names a missing program', async () => {
    const node = nodeBy(commandTransport(['no-such-docker', 'exec', '-i', 'cp1']))
    await expect(node.identity()).rejects.toMatchObject({
      code: 'KCERT_USAGE',
      message: '"no-such-docker" is not installed',
    })
    await node.close()
  })

  test('reports the output of a command that exits before the shell starts', async () => {
    const node = nodeBy(commandTransport(['sh', '-c', 'echo "Error: No such container: cp1" >&2; exit 1']))
    await expect(node.identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      why: 'Error: No such container: cp1',
    })
    await node.close()
  })

  test('stops waiting for a silent shell at the timeout', async () => {
    const seconds = `8${process.pid}`
    const node = nodeBy(commandTransport(['sh', '-c', `exec sleep ${seconds}`]))
    await expect(node.identity({ timeoutMs: 300 })).rejects.toMatchObject({ code: 'KCERT_NODE_UNREACHABLE' })
    await node.close()
    await until(() => !isRunning(['sleep', seconds]))
  })

  test.each([
    ['without newlines', 'tr "\\\\0" x </dev/zero', 'it printed a line longer than 1 MiB'],
    ['in lines', 'yes', 'it printed more than 256 MiB in one response'],
  ])(
    'stops reading from a node that floods kcert with output %s, and names the limit',
    async (_, flood, limit) => {
      const node = nodeBy(commandTransport(['sh', '-c', `exec ${flood}`]))
      await expect(node.identity({ timeoutMs: 120_000 })).rejects.toMatchObject({
        code: 'KCERT_NODE_UNREACHABLE',
        message: 'node "cp1" sent an unreadable response',
        why: `${limit}: another program, perhaps started by the login shell, writes to the same output`,
      })
      await node.close()
    },
  )

  test('kcert exits although a failed command left a process running that keeps writing', async () => {
    const file = join(folder, 'left-running')
    const flood = `(exec tr '\\0' x </dev/zero) & echo $! >${file}; wait`
    await expect(nodeBy(commandTransport(['sh', '-c', flood])).identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
    })
    const pid = Number(readFileSync(file, 'utf8'))
    onTestFinished(() => {
      if (existsSync(`/proc/${pid}`)) process.kill(pid)
    })
    // The output is closed, so the process ends with SIGPIPE.
    await vi.waitFor(() => expect(existsSync(`/proc/${pid}`)).toBe(false), { timeout: 5_000 })
  })

  test('a node that floods kcert with lines delays neither its own deadline nor other work', async () => {
    const node = nodeBy(commandTransport(['sh', '-c', 'while :; do yes | head -c 1000000; sleep 0.05; done']))
    let ticks = 0
    const timer = setInterval(() => ticks++, 50)
    const began = performance.now()
    await expect(node.identity({ timeoutMs: 2_000 })).rejects.toMatchObject({
      message: 'node "cp1" did not respond within 2 s',
      why: undefined,
    })
    clearInterval(timer)
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(ticks).toBeGreaterThan(10)
    await node.close()
  })

  test('ends the processes of a shell that no longer responds', async () => {
    const seconds = `9${process.pid}`
    const printed = join(folder, 'standing-still')
    const node = nodeBy(commandTransport(['sh', '-c', `echo $$ >${printed}; exec "$@"`, 'sh']))
    const controller = new AbortController()
    const running = node.run(['sh', '-c', `sleep ${seconds} & wait`], { signal: controller.signal })
    const failed = expect(running).rejects.toMatchObject({ name: 'AbortError' })
    await until(() => isRunning(['sleep', seconds]))
    process.kill(Number(readFileSync(printed, 'utf8')), 'SIGSTOP')
    controller.abort()
    await failed
    await until(() => !isRunning(['sleep', seconds]))
    await node.close()
  })

  test('reports base64 as missing on a node without base64 and openssl', async () => {
    const bin = join(folder, 'few-tools')
    mkdirSync(bin)
    for (const tool of 'sh head stat readlink cat mv ln rm mkdir rmdir chmod chown sync date id'.split(' ')) {
      const found = ['/bin', '/usr/bin'].map((path) => join(path, tool)).find((path) => existsSync(path))!
      symlinkSync(found, join(bin, tool))
    }
    // The script also searches the usual folders, so the test removes them from it.
    const blind = `exec sh -c "IFS= read -r n; s=\\$(head -c \\"\\$n\\"); eval \\"\\$(echo \\"\\$s\\" | /bin/sed 's/^PATH=.*$/:/')\\""`
    const node = nodeBy(commandTransport(['env', `PATH=${bin}`, 'sh', '-c', blind]))
    await expect(node.identity()).rejects.toMatchObject({
      code: 'KCERT_NODE_UNFIT',
      message: 'node "cp1" lacks programs that kcert needs: uname, base64, sha256sum',
    })
    await node.close()
  })

  test.skipIf(!isRoot)(
    'reports that the user is not root, and what the user cannot read or write',
    async () => {
      const here = join(folder, 'private')
      mkdirSync(here, { mode: 0o700 })
      writeFileSync(join(here, 'ca.key'), 'key', { mode: 0o600 })
      writeFileSync(join(folder, 'ca.key'), 'key', { mode: 0o600 })
      chmodSync(folder, 0o755)
      const node = nodeBy(commandTransport(nobody))
      expect(await node.identity()).toMatchObject({ uid: 65534, isRoot: false, maySudo: false })
      expect(await node.readFiles([join(here, 'ca.key'), join(folder, 'ca.key')])).toMatchObject([
        { found: 'unreadable', reason: 'this user may not search its folder' },
        { found: 'unreadable', reason: 'this user may not read it' },
      ])
      expect(await node.listFolder(here)).toMatchObject({ found: 'unreadable' })
      await expect(node.writeFile(join(folder, 'new'), 'x', { replaces })).rejects.toMatchObject({
        code: 'KCERT_NODE_REFUSED',
      })
      await node.close()
      expect(existsSync(join(folder, 'new'))).toBe(false)
    },
  )

  describe.skipIf(!isRoot)(
    'reports a failed change as a permission error based on the actual permissions',
    () => {
      // Prints a message as another tool, another locale or another cause would.
      const saying = (words: string, by: readonly string[] = []) => {
        const bin = mkdtempSync(join(folder, 'saying-'))
        chmodSync(bin, 0o755)
        chmodSync(folder, 0o755)
        for (const tool of ['mv', 'rm'])
          writeFileSync(join(bin, tool), `#!/bin/sh\necho '${words}' >&2; exit 1\n`, { mode: 0o755 })
        return nodeBy(commandTransport([...by, 'sh', '-c', `PATH=${bin}:$PATH; exec "$@"`, 'sh']))
      }
      const folderWith = (mode: number, owner: number) => {
        const here = mkdtempSync(join(folder, 'rights-'))
        writeFileSync(join(here, 'f'), 'old', { mode: 0o644 })
        chmodSync(here, mode)
        chownSync(here, owner, owner)
        return join(here, 'f')
      }

      test.each([
        ['not for root and an immutable file', 'Operation not permitted', [], 0o755, 0, false],
        ['not for a user in its own folder', 'Permission denied', nobody, 0o755, 65534, false],
        ["for another user in root's folder", 'verboten', nobody, 0o755, 0, true],
        ['for another user in a sticky folder', 'verboten', nobody, 0o1777, 0, true],
      ])('%s', async (_, words, by, mode, owner, isRefused) => {
        const node = saying(words, by)
        const path = folderWith(mode, owner)
        const code = isRefused ? 'KCERT_NODE_REFUSED' : 'KCERT_NODE_FILE_NOT_WRITTEN'
        await expect(node.removeFile(path, { holds: replaces })).rejects.toMatchObject({
          code,
          why: expect.stringContaining(words),
        })
        await node.close()
        expect(readFileSync(path, 'utf8')).toBe('old')
      })

      test('refuses to write a file whose owner this user cannot set', async () => {
        const path = folderWith(0o777, 65534)
        const node = nodeBy(commandTransport(nobody))
        await expect(node.writeFile(path, 'new', { replaces })).rejects.toMatchObject({
          code: 'KCERT_NODE_REFUSED',
        })
        await node.close()
        expect(readFileSync(path, 'utf8')).toBe('old')
      })
    },
  )

  test.skipIf(!isRoot || !existsSync('/usr/bin/sudo'))('who may not use sudo is refused', async () => {
    const refused = nodeBy(commandTransport(nobody, 'sudo'))
    await expect(refused.identity()).rejects.toMatchObject({ code: 'KCERT_NODE_REFUSED' })
    await refused.close()
  })

  test.skipIf(!isRoot)('keeps the old file on a full disk', async () => {
    const here = join(folder, 'full')
    mkdirSync(here)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'kcert-test', here])
    try {
      writeFileSync(join(here, 'f'), 'old')
      const node = nodeBy(localTransport())
      await expect(
        node.writeFile(join(here, 'f'), 'x'.repeat(200_000), { replaces: { sha256: sha256('old') } }),
      ).rejects.toMatchObject({ code: 'KCERT_NODE_FILE_NOT_WRITTEN', why: expect.stringMatching(/No space/) })
      expect(readFileSync(join(here, 'f'), 'utf8')).toBe('old')
      expect(readdirSync(here)).toEqual(['f'])
      await node.close()
    } finally {
      execFileSync('umount', [here])
    }
  })
})

describe.skipIf(whyNoSshd !== undefined)('ssh', () => {
  let sshd: Sshd

  beforeAll(async () => {
    sshd = await startSshd(join(folder, 'sshd'))
  })

  afterAll(() => sshd.stop())

  const connectTo = async (
    target: Parameters<ReturnType<typeof sshConnections>['transport']>[0],
    work: (node: NodeAccess) => Promise<void>,
  ): Promise<void> => {
    const connections = sshConnections()
    const node = nodeBy(connections.transport(target))
    try {
      await work(node)
    } finally {
      await node.close()
      await connections.close()
    }
  }

  const configWith = (name: string, lines: readonly string[]): string => {
    const path = join(folder, name)
    writeFileSync(
      path,
      `Host node\n  HostName 127.0.0.1\n  User ${userInfo().username}\n${lines.join('\n')}\n`,
    )
    return path
  }

  test('rejects an unknown host key, and a changed one', async () => {
    const known = join(folder, 'known')
    const lines = [
      ...[`  Port ${sshd.port}`, `  IdentityFile ${sshd.identityFile}`, `  UserKnownHostsFile ${known}`],
      '  StrictHostKeyChecking ask',
    ]
    const configFile = configWith('unknown', lines)
    await connectTo({ host: 'node', configFile }, async (node) => {
      await expect(node.identity()).rejects.toMatchObject({
        code: 'KCERT_NODE_UNTRUSTED',
        message: 'the host key of node is not known',
      })
    })
    makeKey(join(folder, 'other_host_key'))
    writeFileSync(known, `[127.0.0.1]:${sshd.port} ${publicKey(join(folder, 'other_host_key'))}\n`)
    await connectTo({ host: 'node', configFile }, async (node) => {
      await expect(node.identity()).rejects.toMatchObject({
        code: 'KCERT_NODE_UNTRUSTED',
        message: 'the host key of node changed',
      })
    })
  })

  test('reports a rejected key as a refused login', async () => {
    makeKey(join(folder, 'other_id'))
    const configFile = configWith('refused', [
      ...[`  Port ${sshd.port}`, `  IdentityFile ${join(folder, 'other_id')}`, '  IdentitiesOnly yes'],
      '  StrictHostKeyChecking no',
      '  UserKnownHostsFile /dev/null',
    ])
    await connectTo({ host: 'node', configFile }, async (node) => {
      await expect(node.identity()).rejects.toMatchObject({ code: 'KCERT_NODE_REFUSED' })
    })
  })

  test('reports a closed port and an unknown host name as unreachable', async () => {
    await connectTo({ host: '127.0.0.1', port: deadPort, configFile: '/dev/null' }, async (node) => {
      await expect(node.identity()).rejects.toMatchObject({
        code: 'KCERT_NODE_UNREACHABLE',
        why: expect.stringMatching(/refused/),
      })
    })
    await connectTo({ host: 'no-such-node.invalid', configFile: '/dev/null' }, async (node) => {
      await expect(node.identity()).rejects.toMatchObject({ code: 'KCERT_NODE_UNREACHABLE' })
    })
  })

  test('reaches a node behind a jump host as ssh_config defines it', async () => {
    await connectTo({ host: 'behind', configFile: sshd.configFile }, async (node) => {
      expect((await node.run(['echo', 'there'])).status).toBe(0)
    })
  })

  test('keeps control sockets private, and leaves neither them nor a master process', async () => {
    // Other programs on this machine have their own sockets, so these are in a separate folder.
    const place = mkdtempSync('/tmp/kc-')
    vi.stubEnv('TMPDIR', place)
    onTestFinished(() => {
      vi.unstubAllEnvs()
      rmSync(place, { recursive: true })
    })
    let made = ''
    await connectTo({ host: 'node', configFile: sshd.configFile }, async (node) => {
      await node.identity()
      const names = readdirSync(place)
      expect(names).toEqual([expect.stringMatching(/^kcert-ssh-/)])
      made = names[0]!
      expect(statSync(join(place, made)).mode & 0o777).toBe(0o700)
      expect(mastersOf(join(place, made))).toBeGreaterThan(0)
    })
    expect(readdirSync(place)).toEqual([])
    await until(() => mastersOf(join(place, made)) === 0)
  })

  test('leaves the old or the new file when the connection is cut at any byte', async () => {
    const path = join(folder, 'through-proxy')
    let interrupted = 0
    for (let round = 0; round < 12; round++) {
      const proxy = await cuttingProxy(sshd.port, 6_000 + round * 4_500)
      const configFile = configWith('proxied', [
        ...[`  Port ${proxy.port}`, `  IdentityFile ${sshd.identityFile}`, '  StrictHostKeyChecking no'],
        '  UserKnownHostsFile /dev/null',
      ])
      writeFileSync(path, 'old')
      const content = 'x'.repeat(20_000)
      await connectTo({ host: 'node', configFile }, async (node) => {
        const written = node.writeFile(path, content, { replaces: { sha256: sha256('old') } })
        const failed = await written.then(() => false).catch(() => true)
        if (failed) interrupted++
        else expect(readFileSync(path, 'utf8')).toBe(content)
        expect(['old', content]).toContain(readFileSync(path, 'utf8'))
      })
      proxy.server.close()
    }
    expect(interrupted).toBeGreaterThan(2)
    expect(interrupted).toBeLessThan(12)
  })
})

function mastersOf(name: string): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(name)
    } catch {
      return false
    }
  }).length
}

/** Forwards a connection, and cuts it after this many bytes from the client. */
async function cuttingProxy(port: number, limit: number): Promise<{ server: Server; port: number }> {
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    let passed = 0
    client.on('data', (bytes) => {
      const room = limit - passed
      passed += bytes.length
      upstream.write(bytes.subarray(0, Math.max(0, room)))
      if (passed >= limit) {
        client.destroy()
        upstream.end()
      }
    })
    upstream.on('data', (bytes) => client.write(bytes))
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, port: (server.address() as { port: number }).port }
}
