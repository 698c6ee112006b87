import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf } from '../cluster/objects.ts'
import { movedFlags } from '../rotation/touched-files.ts'
import { extraArgsOf } from '../site/definitions.ts'
import { withExtraArgs } from './extra-args.ts'

// What a rotation changed in an object is brought back, and nothing else: what somebody wrote into it since then is theirs.

type Fields = Readonly<Record<string, unknown>>

/** Returns the object with what kcert changed as the copy has it; the copy itself where there is no object any more. */
export async function restored(
  { kind, name }: { readonly kind: string; readonly name: string },
  now: ApiObject | undefined,
  copy: ApiObject,
): Promise<ApiObject> {
  if (now === undefined) return copy
  switch (kind) {
    case 'APIService':
      return { ...now, spec: withBundleOf(now.spec, copy.spec) }
    case 'CustomResourceDefinition':
      return { ...now, spec: withConversionOf(now.spec, copy.spec) }
    case 'ValidatingWebhookConfiguration':
    case 'MutatingWebhookConfiguration': {
      const before = new Map(listOf(copy.webhooks).map((webhook) => [webhook.name, webhook]))
      const webhooks = listOf(now.webhooks).map((webhook) => {
        const its = before.get(webhook.name)
        if (its === undefined) return webhook
        return { ...webhook, clientConfig: withBundleOf(webhook.clientConfig, its.clientConfig) }
      })
      return { ...now, webhooks }
    }
    case 'ConfigMap':
      return name === 'kubeadm-config' ? withFlagsOf(now, copy) : whole(now, copy)
    default:
      return whole(now, copy)
  }
}

function whole(now: ApiObject, copy: ApiObject): ApiObject {
  const { labels, annotations } = metadataOf(copy)
  return { ...now, ...copy, metadata: { ...metadataOf(now), labels, annotations } }
}

function withBundleOf(now: unknown, copy: unknown): unknown {
  const before = (copy ?? {}) as Fields
  if (now === undefined || before.caBundle === undefined) return now
  return { ...(now as Fields), caBundle: before.caBundle }
}

function withConversionOf(now: unknown, copy: unknown): unknown {
  const [its, before] = [now, copy].map((spec) => ((spec ?? {}) as Conversion).conversion)
  const { webhook } = its ?? {}
  if (webhook === undefined || before?.webhook === undefined) return now
  const clientConfig = withBundleOf(webhook.clientConfig, before.webhook.clientConfig)
  return { ...(now as Fields), conversion: { ...its, webhook: { ...webhook, clientConfig } } }
}

interface Conversion {
  readonly conversion?: { readonly webhook?: { readonly clientConfig?: unknown } }
}

function listOf(webhooks: unknown): readonly (Fields & { readonly clientConfig?: unknown })[] {
  return Array.isArray(webhooks) ? webhooks : []
}

/** Byte for byte where nobody else wrote; otherwise the flags alone: an upgrade writes its version there. */
async function withFlagsOf(now: ApiObject, copy: ApiObject): Promise<ApiObject> {
  const [text, before] = [now, copy].map(
    ({ data }) => (data as Texts | undefined)?.ClusterConfiguration ?? '',
  )
  const byKcert = await withExtraArgs(before!, 'controllerManager', await flagsIn(text!))
  if (byKcert === text) return whole(now, copy)
  const ClusterConfiguration = await withExtraArgs(text!, 'controllerManager', await flagsIn(before!))
  return { ...now, data: { ...(now.data as Texts), ClusterConfiguration } }
}

type Texts = Readonly<Record<string, string>>

/** The flags that a rotation leads elsewhere, null where they are not set. */
async function flagsIn(text: string): Promise<Record<string, string | null>> {
  const { controllerManager = {} } = await extraArgsOf(text)
  return Object.fromEntries(movedFlags.map((flag) => [flag, controllerManager[flag] ?? null]))
}
