import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Compression } from './archives.ts'
import { clampTimes, packageVersion, type Release, thirdPartyLicenses, writeContents } from './contents.ts'
import { gzipManPages } from './man-pages.ts'
import { type Arch, archNames } from './node.ts'

/** Builds the .rpm of an architecture in `target` and returns its file name. rpmbuild reads the needed libraries from the executable. */
export function buildRpm(
  arch: Arch,
  executable: string,
  release: Release,
  target: string,
  temporary: string,
  { xz }: Compression,
): string {
  const top = join(temporary, `rpm-${arch}`)
  const root = join(top, 'contents')
  writeContents(executable, join(root, 'usr'), release)
  gzipManPages(join(root, 'usr'))
  const licenses = join(root, 'usr/share/licenses/kcert')
  mkdirSync(licenses, { recursive: true })
  copyFileSync('LICENSE', join(licenses, 'LICENSE'))
  writeFileSync(join(licenses, 'THIRD-PARTY.txt'), thirdPartyLicenses())
  clampTimes(root, release)
  const spec = join(top, 'kcert.spec')
  writeFileSync(spec, specOf(release, root, xz))
  const rpm = archNames[arch].rpm
  execFileSync('rpmbuild', ['-bb', '--quiet', '--target', rpm, '--define', `_topdir ${top}`, spec], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(release.date.getTime() / 1000) },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [name = ''] = readdirSync(join(top, 'RPMS', rpm))
  copyFileSync(join(top, 'RPMS', rpm, name), join(target, name))
  return name
}

function specOf(release: Release, root: string, xz: number): string {
  return `# An executable must not be stripped after its scripts are injected: it crashes at its start.
%global __os_install_post %{nil}
%global debug_package %{nil}
%global _build_id_links none
%global _binary_payload w${xz}T2.xzdio
%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
Name: kcert
Version: ${packageVersion(release)}
Release: 1
Summary: Manage the certificates of Kubernetes clusters
License: Apache-2.0

%description
kcert inspects certificates in files and clusters. It creates, checks, approves
and signs certificate signing requests. It renews expired certificates and
rotates the CAs of a cluster. The package contains one executable, which
includes Node.js.

%install
mkdir -p %{buildroot}
cp -a ${root}/. %{buildroot}/

%files
%attr(0755, root, root) /usr/bin/kcert
/usr/bin/kubectl-kcert
/usr/bin/kubectl_complete-kcert
%defattr(0644, root, root, 0755)
%doc /usr/share/man/man1/*
/usr/share/bash-completion/completions/kcert
/usr/share/zsh/site-functions/_kcert
/usr/share/fish/vendor_completions.d/kcert.fish
# rpm removes only folders that a package owns.
%dir /usr/share/bash-completion
%dir /usr/share/bash-completion/completions
%dir /usr/share/zsh
%dir /usr/share/zsh/site-functions
%dir /usr/share/fish
%dir /usr/share/fish/vendor_completions.d
%dir /usr/share/licenses
%dir /usr/share/licenses/kcert
%license /usr/share/licenses/kcert/*
`
}
