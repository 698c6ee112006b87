/**
 * The same list without the room for 16 more members that `push` leaves in it. Certificates are full of lists of one or two,
 * and that room is the larger part of what 10,000 of them would hold.
 */
export function settled<Member>(list: Member[]): Member[] {
  return list.slice()
}
