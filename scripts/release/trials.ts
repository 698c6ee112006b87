import { execFile } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Arch, archNames, launcherOf } from './node.ts'
import { readLayout } from './oci.ts'

// Tests that use each file of a release as a new user would. A test throws if the file does not do what README.md documents, and
// returns its observations. `files` is the folder of the release, `folder` an empty one.

const execute = promisify(execFile)
const example = resolve('examples/kubelet.kubeconfig')

export interface Answer {
  readonly stdout: string
  readonly stderr: string
  readonly exit: number
}

export async function run(program: string, args: readonly string[], cwd = '/'): Promise<Answer> {
  const env = {
    PATH: process.env.PATH,
    HOME: '/nonexistent',
    NO_COLOR: '1',
    LC_ALL: 'C.UTF-8',
    MANPAGER: 'cat',
  }
  try {
    return { ...(await execute(program, [...args], { cwd, env, maxBuffer: 1 << 26 })), exit: 0 }
  } catch (error) {
    const {
      stdout = '',
      stderr = '',
      code,
    } = error as { stdout?: string; stderr?: string; code?: number | string }
    if (typeof code !== 'number') throw error
    return { stdout, stderr, exit: code }
  }
}

export async function must(program: string, args: readonly string[], cwd?: string): Promise<string> {
  const { stdout, stderr, exit } = await run(program, args, cwd)
  if (exit !== 0) throw new Error(`${program} ${args.join(' ')} exits ${exit}: ${stderr || stdout}`)
  return stdout
}

/** Throws unless kcert prints its version and finds the expired CA of the example. */
export async function answers(command: readonly string[], input = example): Promise<string> {
  const [program = '', ...words] = command
  const version = (await must(program, [...words, '--version'])).trim()
  const inspected = await run(program, [...words, 'inspect', input])
  if (inspected.exit !== 3 || !inspected.stdout.includes('CERT_EXPIRED') || inspected.stderr !== '')
    throw new Error(
      `${command.join(' ')} inspect exits ${inspected.exit}: ${inspected.stderr || inspected.stdout}`,
    )
  return version
}

export function fileIn(files: string, pattern: string): string {
  const [name] = globSync(pattern, { cwd: files })
  if (name === undefined) throw new Error(`the release has no ${pattern}`)
  return join(files, name)
}

/** Checks that all files have the checksums of SHA256SUMS, and that each file is listed. */
export async function tryChecksums(files: string): Promise<string> {
  const listed = (await must('sha256sum', ['--check', 'SHA256SUMS'], files)).trim().split('\n')
  const unlisted = readdirSync(files).filter(
    (name) => !name.startsWith('SHA256SUMS') && !listed.includes(`${name}: OK`),
  )
  if (unlisted.length > 0) throw new Error(`not in SHA256SUMS: ${unlisted.join(', ')}`)
  return `SHA256SUMS: ${listed.length} files`
}

/** Checks that `npm install -g` installs one package and no other. */
export async function tryNpmPackage(files: string, folder: string): Promise<string> {
  const archive = fileIn(files, 'kcert-*.tgz')
  await must('npm', [
    'install',
    '--global',
    '--offline',
    '--no-audit',
    '--cache',
    join(folder, 'cache'),
    '--prefix',
    folder,
    archive,
  ])
  const packages = globSync('lib/node_modules/**/package.json', {
    cwd: folder,
    exclude: (path) => path.endsWith('kcert/bin') || path.endsWith('kcert/dist'),
  })
  if (packages.join() !== 'lib/node_modules/kcert/package.json')
    throw new Error(`npm installed ${packages.join(', ')}`)
  const version = await answers([process.execPath, join(folder, 'bin/kcert')])
  await must(process.execPath, [join(folder, 'bin/kubectl-kcert'), '--version'])
  await readsWell(join(folder, 'share/man/man1/kcert-rotate-ca.1'))
  return `npm install -g: one package, ${version}`
}

/** Serves the files of a release on a loopback port, as a download folder does. `change` may change the response. */
export async function serve(
  files: string,
  change: (bytes: Buffer) => void = () => undefined,
): Promise<{ url: string; served: readonly string[]; server: Server }> {
  const served: string[] = []
  const server = createServer((request, response) => {
    const name = (request.url ?? '').slice(1)
    served.push(name)
    if (!/^[\w.-]+$/.test(name) || !existsSync(join(files, name))) return void response.writeHead(404).end()
    const bytes = readFileSync(join(files, name))
    change(bytes)
    response.end(bytes)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, served, server }
}

/** Checks that install.sh downloads from a server, refuses a changed archive, and removes everything that it installed. */
export async function tryInstallScript(files: string, folder: string): Promise<string> {
  let spoil = false
  const { url, served, server } = await serve(files, (bytes) => {
    if (spoil) bytes[1000] = (bytes[1000] ?? 0) ^ 1
  })
  const install = (...more: string[]): Promise<Answer> =>
    run('sh', [join(files, 'install.sh'), '--prefix', join(folder, 'prefix'), ...more])
  try {
    // An empty folder that existed before stays.
    mkdirSync(join(folder, 'prefix/bin'), { recursive: true })
    const present = (): string => globSync('**/*', { cwd: join(folder, 'prefix') }).join()
    spoil = true
    const refused = await install('--from', url)
    if (refused.exit === 0 || !refused.stderr.includes('nothing was installed'))
      throw new Error(`install.sh takes a changed archive: ${refused.stdout}${refused.stderr}`)
    if (present() !== 'bin') throw new Error(`a refused install left ${present()}`)
    spoil = false
    const installed = await install('--from', url)
    if (installed.exit !== 0) throw new Error(`install.sh exits ${installed.exit}: ${installed.stderr}`)
    const version = await answers([join(folder, 'prefix/bin/kcert')])
    await must(join(folder, 'prefix/bin/kubectl-kcert'), ['--version'])
    await readsWell(join(folder, 'prefix/share/man/man1/kcert-rotate-ca.1'))
    const missing = await install('--from', `${url}/none`)
    if (missing.exit === 0) throw new Error('install.sh does not notice a download that fails')
    // A second installation keeps the data that --uninstall needs.
    await install('--from', url)
    await install('--uninstall')
    if (present() !== 'bin') throw new Error(`install.sh --uninstall left ${present()} of a folder with bin`)
    return `install.sh: ${served[0]} by HTTP, a changed archive refused, ${version}, removed`
  } finally {
    server.close()
  }
}

async function readsWell(page: string): Promise<void> {
  const { stdout, exit } = await run('man', ['-l', page])
  if (!existsSync(page)) throw new Error(`there is no ${page}`)
  if (existsSync('/usr/bin/man') && (exit !== 0 || !/NAME\n.*EXIT STATUS\n/s.test(stdout)))
    throw new Error(`man -l ${page} exits ${exit}`)
}

/** Checks that the .deb contains the required files, unpacked in a separate folder. */
export async function tryDebUnpacked(files: string, folder: string): Promise<string> {
  const file = fileIn(files, `kcert_*_${archNames[process.arch as Arch].deb}.deb`)
  await must('dpkg-deb', ['--extract', file, folder])
  await must('md5sum', ['--check', '--quiet', join(await controlOf(file, folder), 'md5sums')], folder)
  await readsWell(join(folder, 'usr/share/man/man1/kcert-rotate-ca.1.gz'))
  return `.deb: unpacked, ${await answers([join(folder, 'usr/bin/kcert')])}`
}

async function controlOf(file: string, folder: string): Promise<string> {
  await must('dpkg-deb', ['--control', file, `${folder}-control`])
  return `${folder}-control`
}

/** Checks that the archive that krew unpacks has the executable, the license and the man pages. */
export async function tryArchives(files: string, folder: string): Promise<string> {
  for (const extension of ['tar.gz', 'tar.xz', 'zip']) {
    const own = join(folder, extension)
    mkdirSync(own)
    const archive = fileIn(files, `kcert-*-linux-${archNames[process.arch as Arch].deb}.${extension}`)
    if (extension === 'zip') await must('unzip', ['-q', archive, '-d', own])
    else await must('tar', ['-xf', archive, '-C', own])
    const [top = ''] = readdirSync(own)
    for (const name of ['LICENSE', 'THIRD-PARTY.txt', 'share/man/man1/kcert.1'])
      if (!existsSync(join(own, top, name))) throw new Error(`${archive} has no ${name}`)
    await answers([join(own, top, 'bin/kcert')])
  }
  return 'archives: .tar.gz, .tar.xz and .zip unpacked, each answers'
}

/** Checks the executable for arm64, here under qemu-user: the start prints no message about rejected code. */
export async function tryArm64(files: string, folder: string): Promise<string> {
  await must('tar', ['-xf', fileIn(files, 'kcert-*-linux-arm64.tar.xz'), '-C', folder])
  const [top = ''] = readdirSync(folder)
  return `arm64: ${await answers([...(launcherOf('arm64') ?? []), join(folder, top, 'bin/kcert')])}`
}

/**
 * Checks the container image: blobs have their digests, no layer has a shell, and kcert runs as the user of the image in a root
 * folder that this user cannot change. Needs root, for chroot.
 */
export async function tryImage(files: string, folder: string): Promise<string> {
  await must('tar', ['-xf', fileIn(files, 'kcert-*-image.tar'), '-C', folder])
  const index = readLayout(folder)
  const told = []
  for (const { arch, config, layers } of index.images) {
    const root = join(folder, `root-${arch}`)
    mkdirSync(root)
    for (const layer of layers) await must('tar', ['-xf', layer, '-C', root])
    const shells = globSync('**/{sh,bash,dash,busybox,zsh,env,apt,dpkg}', { cwd: root, withFileTypes: true })
    if (shells.some((entry) => !entry.isDirectory()))
      throw new Error(`the image for ${arch} has ${shells.map(({ name }) => name).join(', ')}`)
    const [program = ''] = config.Entrypoint
    const launcher = launcherOf(arch)
    if (launcher === undefined) continue
    const [emulator] = launcher
    const node = ['/usr/bin/node', '/usr/lib/kcert/bin/run.js']
    if (emulator !== undefined) cpSync(join('/usr/bin', emulator), join(root, emulator))
    cpSync(example, join(root, 'kubelet.kubeconfig'))
    const command = emulator === undefined ? [program] : [`/${emulator}`, ...node]
    const chroot = ['chroot', `--userspec=${config.User}`, root, ...command]
    told.push(`${archNames[arch].deb} ${await answers(chroot, '/kubelet.kubeconfig')} as ${config.User}`)
  }
  return `image ${index.digest}: no shell, ${told.join(', ')}`
}

/** Checks that lintian reports no error and no warning about the .deb files. */
export async function tryLintian(files: string): Promise<string> {
  const debs = globSync('*.deb', { cwd: files })
  const { stdout } = await run('lintian', ['--allow-root', ...debs], files)
  if (stdout.trim() !== '') throw new Error(`lintian: ${stdout}`)
  return `lintian: ${debs.length} .deb files, no error and no warning`
}

/** Checks that mandoc and groff report no error and no warning in the man pages. */
export async function tryManPages(files: string, folder: string): Promise<string> {
  await must('tar', ['-xf', fileIn(files, 'kcert-*-linux-amd64.tar.gz'), '-C', folder, '--wildcards', '*.1'])
  const pages = globSync('*/share/man/man1/kcert*.1', { cwd: folder })
  const { stdout } = await run('mandoc', ['-T', 'lint', '-W', 'warning', ...pages], folder)
  const found = stdout.split('\n').filter((line) => / (?:WARNING|ERROR|UNSUPP): /.test(line))
  if (found.length > 0) throw new Error(`mandoc: ${found.join('\n')}`)
  for (const page of pages) {
    const { stderr } = await run('man', ['--warnings', '-l', page], folder)
    if (stderr !== '') throw new Error(`man ${page}: ${stderr}`)
  }
  return `mandoc and man: ${pages.length} man pages, no error and no warning`
}

/** Checks that RELEASING.md's commands sign SHA256SUMS with a key, verify the signature, and refuse it for a changed file. */
export async function trySignature(files: string, folder: string, key: string): Promise<string> {
  cpSync(join(files, 'SHA256SUMS'), join(folder, 'SHA256SUMS'))
  writeFileSync(
    join(folder, 'allowed_signers'),
    `maintainers namespaces="kcert-release" ${readFileSync(`${key}.pub`, 'utf8')}`,
  )
  const page = readFileSync('RELEASING.md', 'utf8')
  const command = (start: string): string => {
    const found = page.split(/[`\n]/).find((part) => part.startsWith(start))
    if (found === undefined) throw new Error(`RELEASING.md has no command ${start}`)
    return found
  }
  const verify = (): Promise<Answer> => run('sh', ['-c', command('ssh-keygen -Y verify')], folder)
  await must('sh', ['-c', command('ssh-keygen -Y sign').replace('-f KEY', `-f ${key}`)], folder)
  const verified = await verify()
  if (verified.exit !== 0) throw new Error(`the signature does not verify: ${verified.stderr}`)
  writeFileSync(join(folder, 'SHA256SUMS'), 'changed', { flag: 'a' })
  if ((await verify()).exit === 0) throw new Error('a changed file verifies')
  return "SHA256SUMS.sig: RELEASING.md's commands sign and verify, and refuse a changed file"
}
