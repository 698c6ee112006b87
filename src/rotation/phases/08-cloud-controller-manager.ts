import { folderOn, materialPaths } from '../material.ts'
import { definePhase } from '../phase.ts'
import { type DesiredProcess, isAsDesired, passOver } from '../restart.ts'
import { type ComponentSnapshot, componentsNamed, type Observed } from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { backToDefinitions } from '../undo-pass.ts'

const name = 'cloud-controller-manager'

export const cloudControllerManager = definePhase('cloud-controller-manager', {
  sees: ['components', 'files', 'leases'],

  gaps: (observed, target) =>
    configured(observed, target)
      .filter((component) => !isAsDesired(observed, component, wantedOf(observed, component)))
      .map(({ id }) => ({ at: id, what: 'does not run with both CAs' })),

  plan(observed, target) {
    const managers = { ...observed, components: configured(observed, target) }
    return passOver(managers, name, (component) => wantedOf(observed, component))
  },

  remarks: (observed, target) =>
    target.isDropping || configured(observed, target).length > 0
      ? []
      : ['complete: no cloud-controller-manager with --root-ca-file'],

  undo: backToDefinitions,
})

function configured(observed: Observed<'components'>, target: Target): readonly ComponentSnapshot[] {
  if (target.isDropping || changeOf(target, 'cluster') === undefined) return []
  return componentsNamed(observed, name).filter(({ flags }) => flags['root-ca-file'] !== undefined)
}

function wantedOf(observed: Observed<'components'>, { node }: ComponentSnapshot): DesiredProcess {
  const { bundle } = materialPaths(folderOn(observed, node), 'cluster')
  return { flags: { 'root-ca-file': bundle }, files: [bundle] }
}
