import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from './command.ts'
import { folders, withLock } from './state.ts'
import type { Steps } from './steps.ts'

const version = 'v3.22.0'

/** Returns helm, built from its Go module or from the cache. Go verifies the module by its checksum database. */
export async function buildHelm(steps: Steps): Promise<string> {
  const helm = join(folders.cache, `helm-${version}`, 'helm')
  if (existsSync(helm)) return helm
  return withLock(join(folders.cache, 'build.lock'), `the cache ${folders.cache}`, 30 * 60_000, async () => {
    if (existsSync(helm)) return helm
    const draft = `${dirname(helm)}.new`
    mkdirSync(draft, { recursive: true })
    await steps.step(`build helm ${version} (about 8 min on 2 cores, once)`, () =>
      run(
        ['go', 'install', '-p', '2', '-trimpath', '-ldflags=-s -w', `helm.sh/helm/v3/cmd/helm@${version}`],
        {
          env: { ...(process.env as Record<string, string>), CGO_ENABLED: '0', GOBIN: draft },
          next: 'the Go module proxy must be reachable; run again, what was built is kept',
        },
      ),
    )
    renameSync(draft, dirname(helm))
    return helm
  })
}
