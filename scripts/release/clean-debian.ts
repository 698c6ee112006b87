import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Arch, archNames, nodeFolder } from './node.ts'
import { answers, fileIn, must } from './trials.ts'

// Runs the install commands of README.md in a new Debian 12. Each installs kcert from a local server, kcert runs, and its man
// pages open. The uninstall command leaves only the files that existed before. The system is a chroot folder, so the machine is
// not changed. Needs root.

/** A Debian 12 in a folder, and the address of a server with the files of the release. */
export interface CleanDebian {
  readonly root: string
  readonly url: string
  readonly files: string
}

/** The packages that README.md's commands need: man-db, curl and sudo, and the libraries of the executable. */
const packages = ['man-db', 'curl', 'sudo', 'ca-certificates', 'libstdc++6']

/** Creates a Debian 12 in `root`, which must not exist. */
export function createDebian(root: string): void {
  execFileSync('debootstrap', ['--variant=minbase', `--include=${packages.join()}`, 'bookworm', root], {
    stdio: 'ignore',
  })
}

interface Way {
  readonly what: string
  readonly arch?: Arch
  readonly install: string
  readonly remove: string
  readonly program?: string
  /** Package managers install completions; npm does not. */
  readonly completions?: boolean
}

/** Tests the .deb of an architecture with apt. Debian can have the libraries of both architectures installed. */
export async function tryDebInstalled(debian: CleanDebian, arch: Arch): Promise<string> {
  if (arch === 'arm64')
    await inside(
      debian,
      'dpkg --add-architecture arm64 && apt-get update -q && apt-get install -y -q libc6:arm64 libstdc++6:arm64',
    )
  const { deb } = archNames[arch]
  return installedAndRemoved(debian, {
    what: `.deb for ${deb}`,
    arch,
    install: readmeLine('apt install').replace('$(dpkg --print-architecture)', deb),
    remove: readmeRemoval('apt remove'),
  })
}

/** Tests the .rpm of an architecture with dnf, which also removes the package that represents the libraries. */
export async function tryRpmInstalled(debian: CleanDebian, arch: Arch): Promise<string> {
  const { rpm } = archNames[arch]
  await prepareDnf(debian, fileIn(debian.files, `kcert-*.${rpm}.rpm`))
  const forArch = (line: string): string =>
    arch === process.arch ? line : line.replace('dnf ', `dnf --forcearch=${rpm} `)
  return installedAndRemoved(debian, {
    what: `.rpm for ${rpm}`,
    arch,
    install: forArch(readmeLine('dnf install').replace('$(uname -m)', rpm)),
    remove: forArch(readmeRemoval('dnf remove')),
  })
}

/** Tests the archive with install.sh. */
export function tryScriptInstalled(debian: CleanDebian): Promise<string> {
  return installedAndRemoved(debian, {
    what: 'install.sh',
    install: readmeLine('install.sh --from'),
    remove: readmeRemoval('install.sh --uninstall'),
    program: '/usr/local/bin/kcert',
  })
}

/**
 * Tests the npm package with the npm of this machine and the Node.js that kcert is built with. man1 and ~/.cache are shared by
 * all programs, so they may stay.
 */
export async function tryNpmInstalled(debian: CleanDebian): Promise<string> {
  const local = join(debian.root, 'usr/local')
  copyFileSync(join(nodeFolder('x64'), 'bin/node'), join(local, 'bin/node'))
  const npm = join(await must('sh', ['-c', 'realpath "$(command -v npm)"']), '../..')
  mkdirSync(join(local, 'lib/node_modules'), { recursive: true })
  cpSync(npm, join(local, 'lib/node_modules/npm'), { recursive: true })
  await inside(
    debian,
    'ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm; mkdir -p /usr/local/share/man/man1 /root/.cache',
  )
  return installedAndRemoved(debian, {
    what: 'npm package',
    install: readmeLine('npm install'),
    remove: readmeRemoval('npm uninstall'),
    program: '/usr/local/bin/kcert',
    completions: false,
  })
}

async function installedAndRemoved(debian: CleanDebian, way: Way): Promise<string> {
  const { what, arch = 'x64', program = '/usr/bin/kcert' } = way
  const shared = await sharedFolder(debian)
  const before = await list(debian)
  // "y" is the answer to "Is this ok?".
  await inside(debian, `printf 'y\\ny\\n' | (cd ${shared} && URL=${debian.url} && ${way.install})`)
  const launcher = arch === process.arch ? [] : ['/tmp/qemu-aarch64-static']
  const version = await answers(
    ['chroot', debian.root, 'env', 'HOME=/root', ...launcher, program],
    '/tmp/kubelet.kubeconfig',
  )
  for (const page of ['kcert', 'kcert-rotate-ca', 'kubectl-kcert'])
    if (!(await inside(debian, `MANPAGER=cat man ${page}`)).includes('EXIT STATUS'))
      throw new Error(`man ${page} is not complete`)
  if (way.completions ?? true)
    for (const path of ['bash-completion/completions/kcert', 'fish/vendor_completions.d/kcert.fish'])
      if (!existsSync(join(debian.root, program, '../../share', path))) throw new Error(`there is no ${path}`)
  const installed = await list(debian)
  await inside(debian, `printf 'y\\n' | (cd ${shared} && ${way.remove})`)
  const after = await list(debian)
  const left = [...after].filter((path) => !before.has(path))
  const lost = [...before].filter((path) => !after.has(path))
  if (left.length > 0) throw new Error(`removing the ${what} leaves ${left.join(', ')}`)
  if (lost.length > 0) throw new Error(`removing the ${what} also removes ${lost.join(', ')}`)
  return `${what}: README.md's line, ${version}, inspect, man, removed: ${installed.size - before.size} files and folders came, none is left`
}

/** Creates an empty folder for downloads in the system's /tmp, with the input of `kcert inspect` and the emulator next to it. */
async function sharedFolder({ root }: CleanDebian): Promise<string> {
  cpSync('examples/kubelet.kubeconfig', join(root, 'tmp/kubelet.kubeconfig'))
  for (const emulator of globSync('/usr/bin/qemu-aarch64-static'))
    cpSync(emulator, join(root, 'tmp', basename(emulator)))
  return (await must('chroot', [root, 'mktemp', '-d'])).trim()
}

function inside({ root }: CleanDebian, script: string): Promise<string> {
  return must('chroot', [
    root,
    'sh',
    '-ec',
    `cd /tmp; export HOME=/root DEBIAN_FRONTEND=noninteractive; ${script}`,
  ])
}

// Caches, logs and databases that belong to apt, dpkg, rpm, dnf, man and npm.
const others =
  /^\/(?:proc|sys|dev|tmp|run|root\/\.(?:npm|rpmdb)|var\/(?:cache|log|lib\/(?:apt|dpkg|rpm|dnf|sudo))|etc\/ld\.so\.cache)(?:\/|$)|\/__pycache__(?:\/|$)/

async function list({ root }: CleanDebian): Promise<Set<string>> {
  const paths = (await must('find', [root, '-xdev'])).split('\n').map((path) => path.slice(root.length))
  return new Set(paths.filter((path) => path !== '' && !others.test(path)))
}

/**
 * Gives dnf a repository with one package, which represents the libraries that the .rpm requires. The system has them already.
 */
async function prepareDnf(debian: CleanDebian, rpm: string): Promise<void> {
  const required = (await must('rpm', ['-qpR', rpm])).trim().split('\n')
  const libraries = required.filter((one) => !one.startsWith('rpmlib('))
  const unknown = libraries.filter(
    (one) => !/^(?:lib(?:c|m|dl|pthread|stdc\+\+|gcc_s)\.so|ld-linux|rtld\(GNU_HASH\)$)/.test(one),
  )
  if (unknown.length > 0) throw new Error(`the .rpm requires ${unknown.join(', ')}`)
  await inside(debian, 'apt-get install -y -q --no-install-recommends dnf rpm createrepo-c')
  const name = `libraries-${basename(rpm, '.rpm').split('.').at(-1)}`
  const provides = libraries.map((one) => `Provides: ${one}\n`).join('')
  const top = join(debian.root, 'tmp', name)
  mkdirSync(top, { recursive: true })
  writeFileSync(
    join(top, 'libraries.spec'),
    `Name: ${name}\nVersion: 1\nRelease: 1\nSummary: Libraries of Debian\nLicense: none\nBuildArch: noarch\n${provides}%description\nLibraries.\n%files\n`,
  )
  await must('rpmbuild', ['-bb', '--quiet', '--define', `_topdir ${top}`, join(top, 'libraries.spec')])
  const repository = `[${name}]\\nname=${name}\\nbaseurl=file:///tmp/${name}/RPMS\\ngpgcheck=0\\n`
  await inside(
    debian,
    `createrepo_c -q /tmp/${name}/RPMS; mkdir -p /etc/yum.repos.d; printf '${repository}' > /etc/yum.repos.d/libraries.repo`,
  )
}

/** Returns README.md's command that downloads, checks and installs, and that contains `text`. */
function readmeLine(text: string): string {
  const lines = readFileSync('README.md', 'utf8').split('\n')
  const line = lines.find((one) => one.startsWith('curl ') && one.includes(text))
  if (line === undefined) throw new Error(`README.md has no line with ${text}`)
  return line
}

/** Returns README.md's command that removes kcert, and that contains `text`. */
function readmeRemoval(text: string): string {
  const commands = [...readFileSync('README.md', 'utf8').matchAll(/`([^`\n]+)`/g)]
  const command = commands.find(([, one = '']) => one.includes(text))?.[1]
  if (command === undefined) throw new Error(`README.md has no command with ${text}`)
  return command
}
