import {
  Inspection,
  type InspectionOptions,
  type InspectionOutcome,
} from '../../src/inspection/inspection.ts'
import type { Problem } from '../../src/inspection/report.ts'
import type { Source, UnreadableSource } from '../../src/inspection/source.ts'
import { defaultThresholds } from '../../src/inspection/thresholds.ts'
import type { NodeFiles } from './kubeadm-tree.ts'

/** Some files of a node, and the walk that finds them. */
export interface Walk {
  readonly files: NodeFiles
  /** Walked folders; default: all of the node's. */
  readonly folders?: readonly string[]
  /** Location of the copy of the node; default: the original location. */
  readonly copiedTo?: string
}

/** Returns the sources that a walk of the folders finds. */
export function sourcesOf({
  files,
  folders = ['/etc/kubernetes', '/var/lib/kubelet/pki'],
  copiedTo = '',
}: Walk): Source[] {
  return folders.flatMap((folder) =>
    [...files]
      .filter(([path]) => path.startsWith(`${folder}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, { bytes, mode, linkTarget }]) => ({
        name: copiedTo + path,
        root: copiedTo + folder,
        bytes,
        file: { path: copiedTo + path, mode, ...(linkTarget !== undefined && { linkTarget }) },
      })),
  )
}

/** Returns a reader of referenced files for the files of a node. */
export function readerOf(files: NodeFiles, copiedTo = ''): InspectionOptions['readReferencedFile'] {
  return (path) => {
    const file = path.startsWith(copiedTo) ? files.get(path.slice(copiedTo.length)) : undefined
    if (file === undefined) return { name: path, reason: 'not-found', detail: 'no such file', file: { path } }
    const { bytes, mode, linkTarget } = file
    return { name: path, bytes, file: { path, mode, ...(linkTarget !== undefined && { linkTarget }) } }
  }
}

export const noFiles: InspectionOptions['readReferencedFile'] = (path) => ({
  name: path,
  reason: 'not-found',
  detail: 'no such file',
})

/** Inspects sources at a given time. */
export async function inspect(
  now: Date,
  sources: readonly (Source | UnreadableSource)[],
  options: Partial<InspectionOptions> = {},
): Promise<InspectionOutcome> {
  const inspection = new Inspection({
    now,
    thresholds: defaultThresholds,
    readReferencedFile: noFiles,
    ...options,
  })
  for (const source of sources) {
    if ('bytes' in source) await inspection.add(source)
    else inspection.addUnreadable(source)
  }
  return inspection.finish()
}

/** Inspects a node's folders at a given time. */
export function inspectNode(
  now: Date,
  walk: Walk,
  options: Partial<InspectionOptions> = {},
): Promise<InspectionOutcome> {
  const readReferencedFile = readerOf(walk.files, walk.copiedTo)
  return inspect(now, sourcesOf(walk), { readReferencedFile, ...options })
}

/** Returns a given source, from text or bytes. */
export function named(name: string, content: string | Uint8Array, mode = 0o600): Source {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return { name, bytes, file: { path: name.startsWith('/') ? name : `/srv/${name}`, mode } }
}

/** Returns the problems with severity warning or higher, as "CODE source entry". */
export function troubles({ report }: InspectionOutcome): string[] {
  return report.problems.filter(({ severity }) => severity !== 'info').map(brief)
}

export function brief({ code, source, entry }: Problem): string {
  return entry === '' ? `${code} ${source}` : `${code} ${source} ${entry}`
}
