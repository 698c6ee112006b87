/** Where something was found: a source, and the place in it. */
export interface Place {
  readonly source: string
  readonly entry: string
}

/** Returns `file: entry`, or the file alone. */
export function placeText({ source, entry }: Place): string {
  return entry === '' ? source : `${source}: ${entry}`
}

/** Returns the one of several copies that says best what they are: that in a file of its own, or the first. */
export function namesakeOf<Copy extends Place>(copies: readonly Copy[]): Copy | undefined {
  return copies.find(({ entry }) => entry === '') ?? copies[0]
}

/** What the places of a report share, said once above the tables, and each place without it. */
export interface ShortPlaces {
  /** The folder or the one source of all; empty when there is nothing to share. */
  readonly heading: string
  readonly of: (place: Place) => string
}

/** Returns the places of a report without what they share: the one source, or the folder that all sources lie in. */
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

// The deepest folder that holds all of them. Not "/" and not one like /etc or tmp/: those say nothing and cost a line.
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
