import type { Place } from '../inspection/problems.ts'

/** Returns `file: entry`, or the file alone. */
export function placeText({ source, entry }: Place): string {
  return entry === '' ? source : `${source}: ${entry}`
}

/** Returns the most descriptive of several copies: the one in its own file, or the first. */
export function namesakeOf<Copy extends Place>(copies: readonly Copy[]): Copy | undefined {
  return copies.find(({ entry }) => entry === '') ?? copies[0]
}

/** The common part of a report's locations, shown once above the tables, and each location without it. */
export interface ShortPlaces {
  /** The common folder or the only source; empty when there is none. */
  readonly heading: string
  readonly of: (place: Place) => string
}

/** Returns the locations of a report without their common part: the only source, or the common folder of all sources. */
export function shortPlaces(sources: readonly string[]): ShortPlaces {
  const [only] = sources
  if (only !== undefined && sources.every((source) => source === only)) {
    return {
      heading: only,
      of: ({ source, entry }) => (source === only ? entry : placeText({ source, entry })),
    }
  }
  const folder = sharedFolder(sources)
  if (folder === '') return { heading: '', of: placeText }
  return {
    heading: folder,
    of: ({ source, entry }) => {
      const short = isBelow(source, folder) ? source.slice(folder.length + 1) : source
      return entry === '' ? short : placeText({ source: short, entry })
    },
  }
}

// Returns the deepest common folder. "/" and folders like /etc or tmp/ are left out: they carry no information and take a line.
function sharedFolder(sources: readonly string[]): string {
  const parts = sources[0]?.split('/').slice(0, -1)
  if (parts === undefined) return ''
  let folder = parts.join('/')
  for (const source of sources) {
    while (folder !== '' && !isBelow(source, folder)) {
      parts.pop()
      folder = parts.join('/')
    }
  }
  return parts.length >= 2 ? folder : ''
}

function isBelow(source: string, folder: string): boolean {
  return source.startsWith(folder) && source[folder.length] === '/'
}
