import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Release } from './contents.ts'
import { type Arch, archNames } from './node.ts'

// Files that name the archives of a release with their checksums: install.sh, krew's manifest and Homebrew's formula.

/** Returns the SHA-256 of a file in hex. */
export function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

interface Published {
  readonly release: Release
  readonly archs: readonly Arch[]
  /** The folder of the release's files. */
  readonly target: string
  /** The URL from which users download them; undefined if it is not known. */
  readonly url: string | undefined
}

const archiveOf = ({ release }: Published, arch: Arch, extension: string): string =>
  `kcert-${release.version}-linux-${archNames[arch].deb}.${extension}`

/** Writes install.sh with the checksums of the archives. `contents` is an archive's unpacked folder. */
export function writeInstallScript(published: Published, contents: string): string {
  const { release, archs, target, url = '' } = published
  const installed = globSync(['bin/*', 'share/**/*'], { cwd: contents, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(contents.length + 1))
    .sort()
  const sums = archs.flatMap((arch) =>
    ['tar.xz', 'tar.gz'].map(
      (extension) =>
        `  ${archNames[arch].deb}.${extension}) sum=${sha256(join(target, archiveOf(published, arch, extension)))} ;;`,
    ),
  )
  const text = readFileSync('scripts/release/install.sh', 'utf8')
    .replaceAll('@VERSION@', release.version)
    .replaceAll('@URL@', url)
    .replaceAll('@FILES@', installed.join('\n'))
    .replaceAll('@SUMS@', sums.join('\n'))
  writeFileSync(join(target, 'install.sh'), text, { mode: 0o755 })
  return 'install.sh'
}

/** Writes krew's manifest (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/). krew names the executable kubectl-kcert. */
export function writeKrewManifest(published: Published): string {
  const { release, archs, target, url } = published
  const platforms = archs.map(
    (arch) => `    - selector:
        matchLabels:
          os: linux
          arch: ${archNames[arch].deb}
      uri: ${url}/${archiveOf(published, arch, 'tar.gz')}
      sha256: ${sha256(join(target, archiveOf(published, arch, 'tar.gz')))}
      files:
        - from: kcert-*/bin/kcert
          to: .
        - from: kcert-*/LICENSE
          to: .
        - from: kcert-*/THIRD-PARTY.txt
          to: .
      bin: kcert
`,
  )
  const text = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: kcert
spec:
  version: v${release.version}
  homepage: ${url}
  shortDescription: Inspect, renew and rotate certificates
  description: |
    Inspects certificates in files and clusters. Creates, checks, approves and
    signs certificate signing requests. Renews expired certificates and rotates
    the CAs of a cluster.
  platforms:
${platforms.join('')}`
  writeFileSync(join(target, 'krew.yaml'), text)
  return 'krew.yaml'
}

/** Writes Homebrew's formula: the executable on Linux, the npm package on macOS. */
export function writeFormula(published: Published): string {
  const { release, archs, target, url } = published
  const linux = archs.map((arch) => {
    const archive = archiveOf(published, arch, 'tar.xz')
    return `    on_${arch === 'x64' ? 'intel' : 'arm'} do
      url "${url}/${archive}"
      sha256 "${sha256(join(target, archive))}"
    end
`
  })
  const npm = `kcert-${release.version}.tgz`
  const text = `class Kcert < Formula
  desc "Manage the certificates of Kubernetes clusters"
  homepage "${url}"
  version "${release.version}"
  license "Apache-2.0"

  on_macos do
    url "${url}/${npm}"
    sha256 "${sha256(join(target, npm))}"
    depends_on "node"
  end

  on_linux do
${linux.join('\n')}  end

  def install
    if OS.mac?
      system "npm", "install", *std_npm_args
      bin.install_symlink Dir["#{libexec}/bin/*"]
      generate_completions_from_executable(bin/"kcert", "completion")
    else
      bin.install Dir["bin/*"]
      man1.install Dir["share/man/man1/*"]
      bash_completion.install "share/bash-completion/completions/kcert"
      zsh_completion.install "share/zsh/site-functions/_kcert"
      fish_completion.install "share/fish/vendor_completions.d/kcert.fish"
    end
  end

  test do
    assert_match "kcert/#{version}", shell_output("#{bin}/kcert --version")
  end
end
`
  writeFileSync(join(target, 'kcert.rb'), text)
  return 'kcert.rb'
}
