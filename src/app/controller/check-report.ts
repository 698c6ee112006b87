import * as v from 'valibot'
import { described, header, optionalText, text } from '../../errors/json-fields.ts'

// The JSON contract of `kcert controller check`. docs/schemas/ControllerCheck.json is generated from it.

export const controllerCheckSchema = v.object({
  ...header('ControllerCheck'),
  user: optionalText('the user that the API server authenticated, if it says so'),
  namespace: text('namespace of the Lease'),
  permissions: v.array(
    v.object({
      verb: v.string(),
      group: text('API group; empty for the core group'),
      resource: text('with its subresource'),
      namespace: optionalText('absent: in the whole cluster'),
      name: optionalText('absent: every object'),
      allowed: v.boolean(),
      neededFor: text('part of the controller that needs it'),
    }),
  ),
  missing: described(v.number(), 'permissions that are not allowed'),
})

export type ControllerCheck = v.InferOutput<typeof controllerCheckSchema>
export type CheckedPermission = ControllerCheck['permissions'][number]
