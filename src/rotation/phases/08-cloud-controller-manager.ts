import { folderOn, materialPaths } from '../material.ts'
import { definePhase } from '../phase.ts'
import { isAsWanted, passOver, type Wanted } from '../restart.ts'
import { type ComponentSnapshot, componentsNamed, type Seen } from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { backToDefinitions } from '../undo-pass.ts'

const name = 'cloud-controller-manager'

export const cloudControllerManager = definePhase('cloud-controller-manager', {
  sees: ['components', 'files', 'leases'],

  gaps: (seen, target) =>
    configured(seen, target)
      .filter((component) => !isAsWanted(seen, component, wantedOf(seen, component)))
      .map(({ id }) => ({ at: id, what: 'does not run with both CAs' })),

  plan(seen, target) {
    const managers = { ...seen, components: configured(seen, target) }
    return passOver(managers, name, (component) => wantedOf(seen, component))
  },

  remarks: (seen, target) =>
    target.isDropping || configured(seen, target).length > 0
      ? []
      : ['holds: no cloud-controller-manager with --root-ca-file'],

  undo: backToDefinitions,
})

function configured(seen: Seen<'components'>, target: Target): readonly ComponentSnapshot[] {
  if (target.isDropping || changeOf(target, 'cluster') === undefined) return []
  return componentsNamed(seen, name).filter(({ flags }) => flags['root-ca-file'] !== undefined)
}

function wantedOf(seen: Seen<'components'>, { node }: ComponentSnapshot): Wanted {
  const { bundle } = materialPaths(folderOn(seen, node), 'cluster')
  return { flags: { 'root-ca-file': bundle }, files: [bundle] }
}
