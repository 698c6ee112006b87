import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Compression } from './archives.ts'
import { clampTimes, packageVersion, type Release, thirdPartyLicenses, writeContents } from './contents.ts'
import { gzipManPages, sizeOf } from './man-pages.ts'
import { type Arch, archNames, newestGlibc } from './node.ts'

const maintainer = 'kcert maintainers <maintainers@kcert.invalid>'

const overrides = `# The executable contains Node.js as its project builds it, which is not position-independent.
kcert: hardening-no-pie *
# Node.js is linked with its own zlib, OpenSSL and others.
kcert: embedded-library *
`

/** Builds the .deb of an architecture in `target` and returns its file name. */
export function buildDeb(
  arch: Arch,
  executable: string,
  release: Release,
  target: string,
  temporary: string,
  { xz }: Compression,
): string {
  const root = join(temporary, `deb-${arch}`)
  writeContents(executable, join(root, 'usr'), release)
  mkdirSync(join(root, 'usr/share/zsh/vendor-completions'), { recursive: true })
  renameSync(
    join(root, 'usr/share/zsh/site-functions/_kcert'),
    join(root, 'usr/share/zsh/vendor-completions/_kcert'),
  )
  execFileSync('rmdir', [join(root, 'usr/share/zsh/site-functions')])
  gzipManPages(join(root, 'usr'))
  const write = (name: string, content: string | Uint8Array): void => {
    mkdirSync(join(root, name, '..'), { recursive: true })
    writeFileSync(join(root, name), content, { mode: 0o644 })
  }
  write('usr/share/doc/kcert/copyright', copyright(release))
  write('usr/share/doc/kcert/changelog.gz', gzipSync(changelog(release), { level: 9 }))
  write('usr/share/doc/kcert/THIRD-PARTY.txt.gz', gzipSync(thirdPartyLicenses(), { level: 9 }))
  write('usr/share/lintian/overrides/kcert', overrides)
  const size = sizeOf(root)
  write('DEBIAN/control', control(arch, release, size))
  const files = execFileSync('find', ['usr', '-type', 'f', '-print0'], { cwd: root, encoding: 'utf8' })
  const sums = execFileSync('md5sum', files.split('\0').filter(Boolean).sort(), {
    cwd: root,
    encoding: 'utf8',
  })
  write('DEBIAN/md5sums', sums)
  clampTimes(root, release)
  const name = `kcert_${packageVersion(release)}_${archNames[arch].deb}.deb`
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', `-z${xz}`, '--build', root, join(target, name)], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(release.date.getTime() / 1000) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return name
}

function control(arch: Arch, release: Release, installedKb: number): string {
  return `Package: kcert
Version: ${packageVersion(release)}
Architecture: ${archNames[arch].deb}
Maintainer: ${maintainer}
Installed-Size: ${installedKb}
Depends: libc6 (>= ${newestGlibc}), libgcc-s1 | libgcc1, libstdc++6 (>= 5.2)
Suggests: kubectl | kubernetes-client, openssh-client
Section: admin
Priority: optional
Description: manage the certificates of Kubernetes clusters
 kcert inspects certificates in files and clusters. It creates, checks,
 approves and signs certificate signing requests. It renews expired
 certificates and rotates the CAs of a cluster.
 .
 The package contains one executable, which includes Node.js.
`
}

function changelog(release: Release): string {
  const date = release.date.toUTCString().replace('GMT', '+0000')
  return `kcert (${packageVersion(release)}) unstable; urgency=medium

  * Release ${release.version}. CHANGELOG.md in the source lists the changes.

 -- ${maintainer}  ${date}
`
}

function copyright({ date }: Release): string {
  return `kcert is licensed under the Apache License, Version 2.0. On Debian systems, its text is in
/usr/share/common-licenses/Apache-2.0.

Copyright ${date.getUTCFullYear()} the kcert authors

The executable contains Node.js and packages of npm. Their licenses are in
/usr/share/doc/kcert/THIRD-PARTY.txt.gz.
`
}
