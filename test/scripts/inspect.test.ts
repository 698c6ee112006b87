import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { safeParse } from 'valibot'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type InspectionReport, inspectionReportSchema } from '../../src/inspection/report.ts'
import { kcert } from './program.ts'
import { client, createCa, folderWith, sessionTime } from './small-pki.ts'

const at = ['--at', sessionTime]
const ca = createCa()
const healthy = client('healthy', ca)
const expired = client('expired', ca, { notAfter: new Date('2026-11-18T09:00:00Z') })

function inspected(
  args: readonly string[],
  options: Parameters<typeof kcert>[1] = {},
): InspectionReport & { exit: number | null } {
  const { stdout, stderr, exit } = kcert(['inspect', '-o', 'json', ...at, ...args], options)
  expect(stderr).toBe('')
  return { ...(JSON.parse(stdout) as InspectionReport), exit }
}

// C0 without line feeds, DEL, C1, bidirectional marks, zero-width and tag characters.
const dangerous =
  /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u

const names = ({ certificates }: InspectionReport) => certificates.map(({ subject }) => subject.commonName)

describe('inputs', () => {
  test('reads a file, a folder and standard input in one run, and a repeated name once', () => {
    const folder = folderWith({ 'a.pem': healthy.pem, 'deep/er/b.pem': expired.pem })
    const report = inspected(
      [folder, join(folder, 'deep'), join(folder, 'a.pem'), join(folder, './deep/../a.pem'), '-', '-'],
      {
        stdin: ca.pem,
      },
    )
    expect(names(report).sort()).toEqual(['expired', 'healthy', 'kubernetes'])
    expect(report.summary.sources).toBe(3)
  })

  test('reads the output of a command through process substitution', () => {
    const folder = folderWith({ 'a.pem': healthy.pem })
    const line = `"$0" bin/run.js inspect <(cat ${folder}/a.pem) -o json --at ${sessionTime}`
    const out = execFileSync('bash', ['-c', line, process.execPath])
    expect(names(JSON.parse(out.toString()) as InspectionReport)).toEqual(['healthy'])
  })

  test('reads thousands of arguments', () => {
    const files = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`${i}.pem`, healthy.pem]))
    const folder = folderWith(files)
    const report = inspected(Object.keys(files), { cwd: folder })
    expect(report.summary.sources).toBe(5000)
  })

  test('reads a file whose name looks like host:port as a file', () => {
    const folder = folderWith({ 'localhost:1': healthy.pem })
    expect(names(inspected(['localhost:1'], { cwd: folder }))).toEqual(['healthy'])
  })

  test('reads $KUBECONFIG and the default kubeconfig without a target', () => {
    const folder = folderWith({
      'home/.kube/config': kubeconfig(healthy.pem),
      'other.conf': kubeconfig(expired.pem),
    })
    const env = { HOME: join(folder, 'home'), KUBECONFIG: `${folder}/other.conf:${folder}/gone.conf` }
    const report = inspected([], { env })
    expect(names(report)).toEqual(expect.arrayContaining(['expired', 'healthy']))
    const sources = new Set(report.certificates.map(({ source }) => source))
    expect(sources).toContain(join(folder, 'home/.kube/config'))
    expect(sources).toContain(join(folder, 'other.conf'))
  })

  test('reports files that this user may not read as a note, not a problem, without a target', () => {
    const folder = folderWith({
      '.kube/config': kubeconfig(healthy.pem),
      'root.conf': kubeconfig(expired.pem),
    })
    chmodSync(folder, 0o755)
    chmodSync(join(folder, 'root.conf'), 0)
    const run = spawnSync(process.execPath, [resolve('bin/run.js'), 'inspect', ...at], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'root.conf') },
      // root may read everything, so the test runs as an ordinary user
      ...(process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}),
    })
    expect(run.stderr).toBe('note: skipped 1 file that this user may not read\nnext: sudo kcert inspect\n')
    expect(run.stdout).toContain('healthy')
    expect(run.stdout).not.toContain('SOURCE_UNREADABLE')
  })

  test('reads a password from a command and from a FIFO', async () => {
    const locked = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
      format: 'pem',
      type: 'pkcs8',
      cipher: 'aes-256-cbc',
      passphrase: 'geheim',
    }) as string
    const cwd = folderWith({ 'a.key': locked })
    const words = `inspect a.key -o json --at ${sessionTime} --password-file`
    const run = (line: string) =>
      spawnSync('bash', ['-c', line, process.execPath, resolve('bin/run.js')], { cwd, encoding: 'utf8' })
    for (const line of [
      `"$0" "$1" ${words} <(echo geheim)`,
      `mkfifo f && { (sleep 0.3; printf geheim > f) & "$0" "$1" ${words} f; }`,
    ]) {
      const { stdout, stderr } = run(line)
      expect(stderr).toBe('')
      expect((JSON.parse(stdout) as InspectionReport).keys[0]!.publicKey).toBeDefined()
    }
  })

  test('opens a keystore with the password file and ignores its line end', () => {
    const folder = folderWith({ 'leaf.pem': healthy.pem, 'leaf.key': healthy.keyPem, password: 'geheim\n' })
    execFileSync(
      'openssl',
      [
        'pkcs12',
        '-export',
        '-in',
        'leaf.pem',
        '-inkey',
        'leaf.key',
        '-out',
        'leaf.p12',
        '-passout',
        'pass:geheim',
      ],
      { cwd: folder },
    )
    expect(names(inspected(['leaf.p12', '--password-file', 'password'], { cwd: folder }))).toEqual([
      'healthy',
    ])
    expect(inspected(['leaf.p12'], { cwd: folder }).problems.map(({ code }) => code)).toEqual([
      'KEYSTORE_LOCKED',
    ])
  })
})

describe('the verdict', () => {
  const folder = () =>
    folderWith({ 'ca.pem': ca.pem, 'healthy.pem': healthy.pem, 'expired.pem': expired.pem })

  test('is 0 without problems and 3 with problems', () => {
    const where = folder()
    expect(inspected([join(where, 'healthy.pem'), join(where, 'ca.pem')]).exit).toBe(0)
    expect(inspected([where]).exit).toBe(3)
  })

  test('applies to the time in --at', () => {
    const where = folder()
    expect(kcert(['inspect', join(where, 'expired.pem'), '--at', '2026-02-01']).exit).toBe(0)
    expect(kcert(['inspect', join(where, 'healthy.pem'), '--at', '2028-01-01']).stdout).toContain('expired')
  })

  test('follows --warn and --crit', () => {
    const file = join(folder(), 'healthy.pem')
    const status = (...flags: string[]) => inspected([file, ...flags]).certificates[0]!.status
    expect([status(), status('--warn', '2y'), status('--crit', '99%')]).toEqual(['ok', 'warning', 'critical'])
  })

  test('uses the exit codes of a Nagios plugin, also when the inspection fails', () => {
    const where = folder()
    const nagios = (...args: string[]) => kcert(['inspect', '-o', 'nagios', ...at, ...args])
    expect(nagios(join(where, 'healthy.pem'))).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/^OK - /),
    })
    expect(nagios(where)).toMatchObject({ exit: 2, stdout: expect.stringMatching(/^CRITICAL - /) })
    for (const wrong of [['/none.pem'], ['--frobnicate'], [where, '--warn', 'soon'], ['127.0.0.1:1']]) {
      expect(nagios(...wrong)).toMatchObject({
        exit: 3,
        stderr: '',
        stdout: expect.stringMatching(/^UNKNOWN - KCERT_[A-Z_]+: .*\n$/),
      })
    }
  })
})

describe('output', () => {
  const folder = () =>
    folderWith({ 'ca.pem': ca.pem, 'healthy.pem': healthy.pem, 'expired.pem': expired.pem })

  test('shows one certificate as a card that begins with its status, and several in a table below the summary', () => {
    const where = folder()
    expect(kcert(['inspect', 'healthy.pem', ...at], { cwd: where }).stdout).toMatch(
      /^healthy\.pem\n {2}name +healthy\n {2}status +valid\n {2}time left .*\n {2}expires /,
    )
    const { stdout } = kcert(['inspect', '.', ...at], { cwd: where })
    expect(stdout).toMatch(/^STATUS +TIME LEFT +EXPIRES \(UTC\) +CERTIFICATE/m)
    expect(stdout).toMatch(/^3 certificates in 3 sources: 1 expired, 2 valid; .*\n\n/)
  })

  test('short prints a line for each certificate: its name, the days left (negative once expired), and its file', () => {
    const { stdout } = kcert(['inspect', '-o', 'short', '.', ...at], { cwd: folder() })
    expect(stdout.split('\n')[0]).toMatch(/^NAME +DAYS +PATH$/)
    expect(stdout).toMatch(/^expired +-\d +(?:\.\/)?expired\.pem$/m)
  })

  test('--only filters, and --sort orders', () => {
    const where = folder()
    expect(names(inspected([where, '--only', 'expired']))).toEqual(['expired'])
    expect(names(inspected([where, '--only', 'expired,ca']))).toEqual(['expired', 'kubernetes'])
    expect(names(inspected([where, '--only', 'expired', '--only', 'ca']))).toEqual(['expired', 'kubernetes'])
    expect(names(inspected([where, '--sort', 'name']))).toEqual(['expired', 'healthy', 'kubernetes'])
  })

  test('pem prints the original certificates', () => {
    const where = folder()
    const { stdout } = kcert(['inspect', '-o', 'pem', '--only', 'ca', where, ...at])
    expect(new X509Certificate(stdout).raw).toEqual(Buffer.from(ca.der))
  })

  test('yaml prints the same data as json', () => {
    const where = folder()
    const yaml = kcert(['inspect', '-o', 'yaml', where, ...at]).stdout
    const { exit: _, ...json } = inspected([where])
    // The second may differ between the two.
    expect({ ...parse(yaml), generatedAt: json.generatedAt }).toEqual(json)
  })

  test('--output-file writes atomically, and standard output stays empty', () => {
    const where = folder()
    const file = join(where, 'kcert.prom')
    const run = kcert(['inspect', '-o', 'prometheus', '--output-file', file, where, ...at])
    expect(run).toEqual({ stdout: '', stderr: '', exit: 3 })
    expect(readFileSync(file, 'utf8')).toMatch(/^# HELP kcert_certificate_not_after_timestamp_seconds/)
    expect(statSync(file).mode & 0o777).toBe(0o644)
    expect(readdirSync(where).filter((name) => name.startsWith('.'))).toEqual([])
    const none = kcert(['inspect', where, '--output-file', join(where, 'none/x'), ...at])
    expect(none).toMatchObject({
      stdout: '',
      exit: 4,
      stderr: expect.stringMatching(/^KCERT_FILE_NOT_WRITTEN: /),
    })
  })

  test('a pipe gets full cells and no colour, FORCE_COLOR enables colour, NO_COLOR and --no-color disable it', () => {
    const long = client('x'.repeat(150), ca)
    const where = folderWith({ 'a.pem': long.pem, 'b.pem': expired.pem })
    const text = (env: Record<string, string>, ...flags: string[]) =>
      kcert(['inspect', where, ...at, ...flags], { env }).stdout
    expect(text({})).toContain('x'.repeat(150))
    expect(text({})).not.toContain('\x1b')
    expect(text({ FORCE_COLOR: '1' })).toContain('\x1b[31m')
    expect(text({ FORCE_COLOR: '1', NO_COLOR: '1' })).not.toContain('\x1b')
    expect(text({ FORCE_COLOR: '1' }, '--no-color')).not.toContain('\x1b')
  })

  test('ignores a reader that closes the pipe early', async () => {
    const files = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`${i}.pem`, healthy.pem]))
    const where = folderWith(files)
    const line = `"$0" bin/run.js inspect ${where} -o wide | head -n 1; echo "exit \${PIPESTATUS[0]}"`
    const run = spawnSync('bash', ['-c', line, process.execPath], { encoding: 'utf8' })
    expect(run.stderr).toBe('')
    expect(run.stdout).toMatch(/^2000 certificates .*\nexit [03]\n$/)
  })

  test.each([
    [['-o', 'name'], 'expired.pem\nhealthy.pem\n'],
    [
      ['-o', 'jsonpath={range .certificates[*]}{.status} {.source}{"\\n"}{end}'],
      'expired expired.pem\nok healthy.pem\n',
    ],
  ])('%j prints only the output for a script', (format, expected) => {
    const cwd = folderWith({ 'expired.pem': expired.pem, 'healthy.pem': healthy.pem })
    expect(kcert(['inspect', 'expired.pem', 'healthy.pem', ...format, ...at], { cwd }).stdout).toBe(expected)
  })

  test.each(['text', 'short', 'wide'])('-o %s --no-headers prints no headings of tables', (format) => {
    const cwd = folderWith({ 'expired.pem': expired.pem, 'healthy.pem': healthy.pem })
    const lines = (...more: string[]) =>
      kcert(['inspect', '.', '-o', format, ...more, ...at], { cwd }).stdout.split('\n')
    const headings = lines().filter((line) => !lines('--no-headers').includes(line))
    expect(headings).toHaveLength(1)
    expect(headings[0]).toMatch(/^(?:CERTIFICATE|NAME|STATUS) /)
  })

  test('--watch inspects repeatedly until it is interrupted, and ends with the last verdict', async () => {
    const where = folderWith({ 'expired.pem': expired.pem })
    const program = spawn(process.execPath, [
      resolve('bin/run.js'),
      'inspect',
      where,
      '--watch',
      '--every',
      '0.05s',
      '-o',
      'nagios',
      ...at,
    ])
    const interruptOnce = onceOnly(() => program.kill('SIGINT'))
    let out = ''
    const exit = await new Promise((ended) => {
      program.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString()
        // A second interrupt would end it at once.
        if (out.split('\n').length > 3) interruptOnce()
      })
      program.on('exit', ended)
    })
    expect(exit).toBe(2)
    expect(new Set(out.trimEnd().split('\n')).size).toBe(1)
    expect(kcert(['inspect', '-', '--watch']).stderr).toMatch(
      /^KCERT_USAGE: --watch cannot read standard input/,
    )
    expect(kcert(['inspect', where, '--every', '5s']).exit).toBe(2)
  })
})

test('--watch tolerates a file that is missing for a moment, and a server that is down', async () => {
  const where = join(folderWith({ 'a.pem': healthy.pem }), 'a.pem')
  const program = spawn(process.execPath, [
    resolve('bin/run.js'),
    'inspect',
    where,
    '127.0.0.1:1',
    '--watch',
    ...['--every', '0.05s', '-o', 'nagios', ...at],
  ])
  const takeAway = onceOnly(() => renameSync(where, `${where}.away`))
  const bringBack = onceOnly(() => renameSync(`${where}.away`, where))
  const interruptOnce = onceOnly(() => program.kill('SIGINT'))
  const seen: string[] = []
  const exit = await new Promise((ended) => {
    program.stdout.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString().trimEnd().split('\n')) seen.push(line)
      takeAway()
      if (!seen.some((line) => line.includes('KCERT_'))) return
      bringBack()
      if (!seen.at(-1)!.includes('KCERT_')) interruptOnce()
    })
    program.on('exit', ended)
  })
  expect(exit).toBe(3)
  expect(seen.some((line) => line.startsWith('UNKNOWN - KCERT_FILE_NOT_FOUND'))).toBe(true)
  // A file that never existed is a mistyped name.
  expect(kcert(['inspect', `${where}.none`, '--watch']).exit).toBe(2)
})

test('waits for a server that is down when --watch starts', async () => {
  const words = ['inspect', '127.0.0.1:1', '--watch', '--every', '0.05s', '-o', 'nagios']
  const program = spawn(process.execPath, [resolve('bin/run.js'), ...words])
  let lines = 0
  const exit = await new Promise((ended) => {
    program.stdout.on('data', () => {
      if (++lines === 3) program.kill('SIGINT')
    })
    program.on('exit', ended)
  })
  expect(exit).toBe(3)
})

describe('bad input exits with 2 and reports what, why and next:', () => {
  function complaint(args: readonly string[], options: Parameters<typeof kcert>[1] = {}): string {
    const { stdout, stderr, exit } = kcert(['inspect', ...args], options)
    expect([stdout, exit]).toEqual(['', 2])
    expect(stderr).toMatch(/^KCERT_[A-Z_]+: .+\n(?:why: .+\n)?(?:(?:fix|next): .+\n)+$/)
    return stderr
  }

  test('a missing file', () => {
    expect(complaint(['/etc/none.pem'])).toBe(
      'KCERT_FILE_NOT_FOUND: /etc/none.pem does not exist\nwhy: no file or folder has that name\nnext: ls -l /etc\n',
    )
    expect(complaint(['api.example.com'])).toContain('next: kcert inspect api.example.com:6443')
    expect(complaint(['http://api.example.com:8080/livez'])).toBe(
      'KCERT_FILE_NOT_FOUND: http://api.example.com:8080/livez is neither a file nor a TLS server\nwhy: a server is named as HOST:PORT or https://HOST\nnext: kcert inspect https://api.example.com:8080\n',
    )
    expect(complaint([''])).toContain('KCERT_USAGE: a target is an empty string')
  })

  test('a folder without certificates', () => {
    const folder = folderWith({ 'notes.txt': 'nothing' })
    expect(complaint([folder])).toContain(`KCERT_USAGE: there is nothing to inspect in ${folder}\n`)
  })

  test('a FIFO, which is never opened', () => {
    const folder = folderWith({})
    execFileSync('mkfifo', [join(folder, 'fifo')])
    expect(complaint([join(folder, 'fifo')])).toContain('is a FIFO, which kcert does not read')
    expect(complaint(['/dev/zero'])).toContain('is a device')
  })

  test('no target on a machine without kubeconfigs', () => {
    expect(complaint([])).toMatch(/^KCERT_USAGE: no target given\nwhy: .*\/nonexistent\/\.kube\/config/)
  })

  test.each([
    ['--warn', 'soon'],
    ['--at', 'tomorrow'],
    ['--timeout', '0s'],
    ['--only', 'rotten'],
    ['--sort', 'beauty'],
    ['-o', 'xml'],
    ['--password-file', '/none'],
  ])('%s %s', (flag, value) => {
    const folder = folderWith({ 'a.pem': healthy.pem })
    expect(complaint([folder, flag, value])).toContain(value)
  })

  test('one bad target is a problem in the report, and the others are shown', () => {
    const folder = folderWith({ 'a.pem': healthy.pem })
    symlinkSync('gone', join(folder, 'dangling.pem'))
    const report = inspected([join(folder, 'a.pem'), join(folder, 'dangling.pem'), '/none.pem'])
    expect([names(report), report.exit]).toEqual([['healthy'], 3])
    expect(report.problems.map(({ source, code }) => [source, code])).toEqual([
      [join(folder, 'dangling.pem'), 'SOURCE_UNREADABLE'],
      ['/none.pem', 'SOURCE_UNREADABLE'],
    ])
  })
})

test('names of certificates and files cannot move, hide or recolour output in any format', () => {
  const evil = '\x1b[2J\u202egnp\u200b\u{e0041}\u009b31m\r\nKCERT OK|x'
  const hostile = client(evil, ca, {
    notAfter: new Date('2026-11-18T09:00:00Z'),
    subjectAltNames: { dns: ['\x1b[31m.example'] },
  })
  const folder = folderWith({
    [`${evil.replaceAll('\n', '')}.pem`]: hostile.pem,
    'ca.pem': ca.pem,
    'bad\x1b[31m.yaml': 'kind: Secret\x9b\n---\n\t',
  })
  for (const format of ['text', 'wide', 'tree', 'json', 'yaml', 'prometheus', 'nagios', 'pem']) {
    const { stdout, stderr } = kcert(['inspect', folder, '-o', format, ...at])
    expect(stdout, format).toContain('gnp')
    expect(stdout + stderr, format).not.toMatch(dangerous)
    expect(stdout, format).not.toMatch(/^KCERT OK/m)
  }
  const { stderr } = kcert(['inspect', `/none\x1b[31m\u202e.pem`])
  expect(stderr).not.toMatch(dangerous)
  expect(stderr).toContain('\\u001b[31m\\u202e')
})

const truth = resolve(process.env.KCERT_TRUTH ?? '../shared/truth')

test.skipIf(!existsSync(truth))(
  'the recorded odd and good certificates come out harmless, by the schema, and without a defect (skipped without ../shared/truth)',
  () => {
    const folders = [join(truth, 'odd-certs'), join(truth, 'good-certs')]
    for (const format of ['text', 'tree', 'wide', 'prometheus', 'pem']) {
      const { stdout, stderr, exit } = kcert(['inspect', ...folders, '-o', format, ...at])
      expect([stderr, exit]).toEqual(['', 3])
      expect(dangerous.test(stdout), format).toBe(false)
    }
    const { exit: _, ...report } = inspected(folders)
    expect(safeParse(inspectionReportSchema, report).issues).toBeUndefined()
    expect(report.summary.certificates).toBeGreaterThan(1000)
    expect(report.problems.filter(({ code }) => code === 'KCERT_DEFECT')).toEqual([])
  },
)

/** Chunks may be split anywhere: the action for the first match must not repeat for the next. */
function onceOnly(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}

function kubeconfig(clientPem: string): string {
  const data = (pem: string) => Buffer.from(pem).toString('base64')
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `- {name: c, cluster: {server: "https://192.0.2.1:6443", certificate-authority-data: ${data(ca.pem)}}}`,
    'users:',
    `- {name: u, user: {client-certificate-data: ${data(clientPem)}}}`,
    'contexts:',
    '- {name: x, context: {cluster: c, user: u}}',
    'current-context: x',
    '',
  ].join('\n')
}
