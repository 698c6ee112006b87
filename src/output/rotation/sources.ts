import type { RotationPlan, RotationSources } from '../../rotation/report.ts'
import { counted } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'

/** The phases that end the use of certificates of the old CA, and the trust in it. */
const phases = { manual: { ends: 9, drops: 12 }, etcd: { ends: 5, drops: 6 } } as const

const mostPlaces = 200

/** Returns what would restore an old CA in the files of a repository, and the diff. */
export function sourceLines(
  { sources, cas }: Pick<RotationPlan, 'sources' | 'cas'>,
  { paint }: View,
): string[] {
  if (sources === undefined) return []
  const { ends, drops } = phases[cas.some(({ ca }) => ca === 'etcd') ? 'etcd' : 'manual']
  const steps = {
    find: 'there is no diff yet: run the same command again after phase 1',
    overlap: `each place needs both CAs, after phase 1 and before phase ${ends}; run the same command again after phase ${drops}`,
    final: 'each place needs only the new CA',
  } as const
  const { folder, step, files, places, unchecked } = sources
  const open = places.filter(({ needsChange }) => needsChange)
  const later = places.length - open.length
  const head = paint.heading(`old CAs in ${printable(folder)}`)
  const more = (all: readonly unknown[], noun: string) =>
    all.length > mostPlaces ? [`  and ${counted(all.length - mostPlaces, noun)} more: see -o json`] : []
  return [
    `${head}: ${counted(open.length, 'place')} to change in ${counted(files, 'file')}`,
    ...(open.length === 0 ? [] : [`  ${steps[step]}`]),
    ...open.slice(0, mostPlaces).map(({ file, line, object, ca, form, byHand }) => {
      const where = object === undefined ? '' : ` (${object})`
      const hand = byHand === undefined ? '' : `; change it by hand: ${byHand}`
      return `  ${printable(`${file}:${line}${where}: old ${ca} CA, ${form === 'other' ? 'in another format' : form}${hand}`)}`
    }),
    ...more(open, 'place'),
    ...(later === 0
      ? []
      : [`  ${counted(later, 'place')} with the old CA must not change before phase ${drops}`]),
    ...unchecked
      .slice(0, mostPlaces)
      .map(({ file, why }) => `  ${printable(`not checked: ${file}: ${why}`)}`),
    ...more(unchecked, 'file'),
  ]
}

/** Returns the diff as it is: `git apply` and `patch` ignore the lines before it. It contains only visible characters. */
export function sourceDiff(sources: RotationSources | undefined): string[] {
  return sources === undefined || sources.diff === '' ? [] : sources.diff.replace(/\n$/, '').split('\n')
}
