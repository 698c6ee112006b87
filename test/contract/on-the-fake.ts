import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApiServer } from '../fakes/api-server.ts'
import type { AccessRule } from '../fakes/api-server-access.ts'
import { openWith, type Stage } from './stage.ts'

/** The fake API server as a stage of the contract suites. */
export async function stageOnFake(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-contract-'))
  const rules: AccessRule[] = []
  const server = await startApiServer({ signer: 'controller', rules })
  const file = server.writeKubeconfig(join(folder, 'admin.kubeconfig'))
  const administrator = await openWith(file)
  return {
    kubeconfig: JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>,
    folder,
    administrator,
    async grant({ username, verbs, group, resources, names }) {
      rules.push({ user: username, verbs, groups: [group], resources, ...(names && { names }) })
    },
    async close() {
      administrator.close()
      await server.close()
      rmSync(folder, { recursive: true })
    },
  }
}
