import { readdirSync, realpathSync, statSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import type { Context } from '../../cli/context.ts'
import { orUndefined } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { RotationSources } from '../../rotation/report.ts'
import type { SourceSearch } from '../../rotation/sources/searched-cas.ts'
import { readSourceFile } from '../../rotation/sources/source-file.ts'
import { failureOf, kindOf, readFile } from '../../system/files.ts'

// The files of a repository, for `rotate-ca plan --sources`. Unlike in `kcert inspect`, links are not followed: whoever writes to the
// repository must not choose which other files kcert reads.

const mostFiles = 100_000
const mostBytes = 1024 ** 3
const mostPlaces = 10_000

type Unchecked = RotationSources['unchecked'][number]

/** Returns a function that searches the files below a folder. Throws KCERT_FILE_NOT_FOUND if it is no folder that can be read. */
export function sourcesIn(
  folder: string,
  { workingFolder }: Pick<Context, 'workingFolder'>,
): (search: SourceSearch) => Promise<RotationSources> {
  const root = realFolder(folder, resolve(workingFolder, folder))
  return async ({ cas, step, unread }) => {
    const places: RotationSources['places'] = []
    const diffs: string[] = []
    const unchecked: Unchecked[] = unread.map((ca) => ({
      file: '.',
      why: `the ${ca} CA of the cluster could not be read, so kcert did not search for it; name the CAs that the cluster has with --ca`,
    }))
    let files = 0
    let bytes = 0
    for (const found of filesBelow(root)) {
      if (typeof found !== 'string') {
        unchecked.push(found)
        continue
      }
      if (files === mostFiles || bytes > mostBytes || places.length > mostPlaces) {
        unchecked.push({
          file: found,
          why: 'this and the next files are above the limit of 100,000 files, 1 GiB or 10,000 places',
        })
        break
      }
      const input = readFile(join(root, found))
      if ('reason' in input) {
        unchecked.push({ file: found, why: input.detail })
        continue
      }
      files++
      bytes += input.bytes.length
      const file = await readSourceFile(found, input.bytes, cas, step)
      places.push(...file.places)
      if (file.diff !== '') diffs.push(file.diff)
      if (file.unchecked !== undefined) unchecked.push({ file: found, why: file.unchecked })
    }
    if (files === 0) unchecked.push({ file: '.', why: 'the folder contains no file that kcert could read' })
    return { folder, step, files, places, unchecked, diff: diffs.join('') }
  }
}

function realFolder(folder: string, path: string): string {
  const found = orUndefined(() => statSync(path))
  if (found?.isDirectory()) return realpathSync(path)
  throw new KcertError(
    'KCERT_FILE_NOT_FOUND',
    `${folder} ${found === undefined ? 'does not exist' : `is ${kindOf(found)}`}`,
    {
      why: '--sources needs the folder with the files of a repository',
      next: commandLine`ls -ld ${folder}`,
    },
  )
}

/** Yields the files below the root, by name, and what is not read, with the reason. Skips .git. */
function* filesBelow(root: string, folder = ''): Generator<string | Unchecked> {
  const path = join(root, folder)
  let entries: ReturnType<typeof listed>
  try {
    entries = listed(path)
  } catch (error) {
    yield { file: folder === '' ? '.' : folder, why: failureOf(error, { path }).detail }
    return
  }
  for (const entry of entries) {
    if (entry.name === '.git') continue
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) yield* filesBelow(root, name)
    else if (entry.isFile()) yield name
    else if (!entry.isSymbolicLink()) yield { file: name, why: 'it is a FIFO, a socket or a device' }
    // The target of a link into the folder is read under its own name.
    else if (!leadsInto(root, join(root, name)))
      yield { file: name, why: 'it is a link that leads out of the folder' }
  }
}

function listed(path: string) {
  return readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
}

function leadsInto(root: string, link: string): boolean {
  const target = orUndefined(() => realpathSync(link))
  return target?.startsWith(root + sep) === true && !target.slice(root.length).split(sep).includes('.git')
}
