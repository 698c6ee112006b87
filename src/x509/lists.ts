/**
 * The same list without the room for 16 more members that `push` leaves in it. Certificates are full of lists of one or two,
 * and that room is the larger part of what 10,000 of them would hold.
 */
export function settled<Member>(list: Member[]): Member[] {
  return list.slice()
}

// Up to here looking through a list is quicker than a Set, which takes 200 octets before anything is in it.
const few = 16

/** Texts that came before. Certificates have five extensions; a hostile one has 70,000, and is read in linear time too. */
export class SeenTexts {
  private readonly first: (string | undefined)[] = new Array<undefined>(few).fill(undefined)
  private count = 0
  private rest: Set<string> | undefined

  /** Notes a text; false when it was noted before. */
  add(text: string): boolean {
    const { first, count } = this
    for (let i = 0; i < count; i++) if (first[i] === text) return false
    if (this.rest?.has(text) === true) return false
    if (count < few) {
      first[count] = text
      this.count++
    } else {
      this.rest ??= new Set()
      this.rest.add(text)
    }
    return true
  }
}
