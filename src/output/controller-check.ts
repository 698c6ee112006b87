import { joinSections } from './sections.ts'
import { statusColumn, table, yesOrNo } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

interface CheckedPermission {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly allowed: boolean
  readonly neededFor: string
}

interface ControllerCheck {
  readonly user?: string | undefined
  readonly permissions: readonly CheckedPermission[]
  readonly missing: number
}

/** Returns the verdict, and each permission of the controller. */
export function renderControllerCheck({ user, permissions, missing }: ControllerCheck, view: View): string {
  const { status } = view.paint
  const verdict =
    missing === 0
      ? status.ok('every permission is granted')
      : status.critical(`${missing} of ${permissions.length} permissions are missing`)
  const who = user === undefined ? '' : ` to ${printable(user)}`
  return joinSections([
    [`${verdict}${who}`],
    table(view, permissions, [
      statusColumn('GRANTED', view.paint, ({ allowed }) => yesOrNo[`${allowed}`]),
      { title: 'VERB', cell: ({ verb }) => verb },
      {
        title: 'RESOURCE',
        cell: ({ group, resource }) => (group === '' ? resource : `${resource}.${group}`),
      },
      { title: 'NAME', cell: ({ name }) => name ?? '' },
      { title: 'NAMESPACE', cell: ({ namespace }) => namespace ?? '' },
      { title: 'NEEDED FOR', cell: ({ neededFor }) => neededFor, dropRank: 1 },
    ]),
  ])
}
