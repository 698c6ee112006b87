import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf } from '../cluster/objects.ts'
import { isObject } from '../errors/is-object.ts'
import { movedFlags } from '../rotation/touched-files.ts'
import { encryptionAlgorithmOf, extraArgsOf } from '../site/definitions.ts'
import { withEncryptionAlgorithm, withExtraArgs } from './extra-args.ts'

// Restores only what a rotation changed in an object. Later changes by others are kept.

/**
 * Returns the object with kcert's changes replaced by the content of the copy, or the copy itself if the object no longer exists.
 */
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
      return name === 'kubeadm-config' ? withFieldsOf(now, copy) : whole(now, copy)
    default:
      return whole(now, copy)
  }
}

function whole(now: ApiObject, copy: ApiObject): ApiObject {
  const { labels, annotations } = metadataOf(copy)
  return { ...now, ...copy, metadata: { ...metadataOf(now), labels, annotations } }
}

function withBundleOf(now: unknown, copy: unknown): unknown {
  const { caBundle } = fieldsIn(copy)
  return now === undefined || caBundle === undefined ? now : { ...fieldsIn(now), caBundle }
}

function withConversionOf(now: unknown, copy: unknown): unknown {
  const conversion = fieldsIn(fieldsIn(now).conversion)
  const before = fieldsIn(fieldsIn(copy).conversion)
  if (conversion.webhook === undefined || before.webhook === undefined) return now
  const webhook = fieldsIn(conversion.webhook)
  const clientConfig = withBundleOf(webhook.clientConfig, fieldsIn(before.webhook).clientConfig)
  return { ...fieldsIn(now), conversion: { ...conversion, webhook: { ...webhook, clientConfig } } }
}

function listOf(webhooks: unknown): readonly ApiObject[] {
  return Array.isArray(webhooks) ? webhooks : []
}

function fieldsIn(value: unknown): ApiObject {
  return isObject(value) ? value : {}
}

/** Restores byte for byte if only kcert wrote to it; otherwise only its fields, because an upgrade writes its version there. */
async function withFieldsOf(now: ApiObject, copy: ApiObject): Promise<ApiObject> {
  const [text, before] = [configurationIn(now), configurationIn(copy)]
  const byKcert = await withFields(before, text)
  if (byKcert === text) return whole(now, copy)
  const ClusterConfiguration = await withFields(text, before)
  return { ...now, data: { ...fieldsIn(now.data), ClusterConfiguration } }
}

/** Returns a configuration with the fields that a rotation changes as in another one. */
async function withFields(text: string, like: string): Promise<string> {
  const flagged = await withExtraArgs(text, 'controllerManager', await flagsIn(like))
  return withEncryptionAlgorithm(flagged, await encryptionAlgorithmOf(like))
}

function configurationIn({ data }: ApiObject): string {
  const text = fieldsIn(data).ClusterConfiguration
  return typeof text === 'string' ? text : ''
}

/** Returns the flags that a rotation changes, with null for unset ones. */
async function flagsIn(text: string): Promise<Record<string, string | null>> {
  const { controllerManager = {} } = await extraArgsOf(text)
  return Object.fromEntries(movedFlags.map((flag) => [flag, controllerManager[flag] ?? null]))
}
