"""Functions that run around the `forward` of a layer."""

from __future__ import annotations

import warnings


class HookRemoveHelper:
    """Takes a hook off again."""

    next_hook_id = 0

    def __init__(self, owner: Hooks, *tables: dict):
        self._owner, self._tables = owner, tables
        self._hook_id = HookRemoveHelper.next_hook_id
        HookRemoveHelper.next_hook_id += 1

    def remove(self) -> None:
        """Takes the hook off."""
        for table in self._tables:
            table.pop(self._hook_id, None)
        self._owner._note_hooks()


class Hooks:
    """The part of `Layer` that knows hooks."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False) -> HookRemoveHelper:
        """Calls `hook(layer, inputs)` before `forward`; what it returns replaces the inputs.

        With `with_kwargs` it is `hook(layer, inputs, kwargs)` and returns both; with `prepend` it runs before the others.
        """
        return self._add_hook(hook, "pre", prepend, with_kwargs, False)

    def register_forward_post_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False) -> HookRemoveHelper:
        """Calls `hook(layer, inputs, outputs)` after `forward`; what it returns replaces the outputs.

        With `with_kwargs` it is `hook(layer, inputs, kwargs, outputs)`; with `prepend` it runs before the others; with
        `always_call` it runs although `forward` raised an exception.
        """
        return self._add_hook(hook, "post", prepend, with_kwargs, always_call)

    register_forward_hook = register_forward_post_hook

    def _add_hook(self, hook, when: str, prepend: bool, with_kwargs: bool, always_call: bool) -> HookRemoveHelper:
        hooks = getattr(self, f"_forward_{when}_hooks")
        flags = getattr(self, f"_forward_{when}_hooks_with_kwargs_flag")
        helper = HookRemoveHelper(self, hooks, flags, self._forward_post_hooks_always_called)
        key = helper._hook_id
        hooks[key] = hook
        if with_kwargs:
            flags[key] = True
        if always_call:
            self._forward_post_hooks_always_called[key] = True
        if prepend:
            hooks.move_to_end(key, last=False)
        self._note_hooks()
        return helper

    def register_state_dict_hook(self, hook) -> HookRemoveHelper:
        """Calls `hook(state)` on what `state_dict` gives; what it returns replaces the state."""
        helper = HookRemoveHelper(self, self._state_dict_hooks)
        self._state_dict_hooks[helper._hook_id] = hook
        return helper

    def _note_hooks(self) -> None:
        """Tells the native base whether a call has to go through `_call_hooked`."""
        self._hooked = bool(self._forward_pre_hooks or self._forward_post_hooks)

    def _call_hooked(self, *inputs, **kwargs):
        done: set[int] = set()
        outputs = None
        try:
            for key, hook in list(self._forward_pre_hooks.items()):
                inputs, kwargs = self._before(key, hook, inputs, kwargs)
            outputs = self.forward(*inputs, **kwargs)
            for key, hook in list(self._forward_post_hooks.items()):
                done.add(key)
                outputs = self._after(key, hook, inputs, kwargs, outputs)
            return outputs
        except Exception:
            for key, hook in list(self._forward_post_hooks.items()):
                if key in self._forward_post_hooks_always_called and key not in done:
                    try:
                        outputs = self._after(key, hook, inputs, kwargs, outputs)
                    except Exception as second:
                        warnings.warn(
                            f"a hook with always_call=True of {type(self).__name__} raised {second!r}; the exception of "
                            "forward goes on instead.",
                            stacklevel=2,
                        )
            raise

    def _before(self, key: int, hook, inputs: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if key in self._forward_pre_hooks_with_kwargs_flag:
            new = hook(self, inputs, kwargs)
            if new is None:
                return inputs, kwargs
            if not (isinstance(new, tuple) and len(new) == 2):
                raise RuntimeError(
                    f"(PreconditionNotMet) {type(self).__name__}: a pre-hook with with_kwargs=True returns None or "
                    f"(inputs, kwargs), got {new!r}."
                )
            return new
        new = hook(self, inputs)
        if new is None:
            return inputs, kwargs
        return (new if isinstance(new, tuple) else (new,)), kwargs

    def _after(self, key: int, hook, inputs: tuple, kwargs: dict, outputs):
        if key in self._forward_post_hooks_with_kwargs_flag:
            new = hook(self, inputs, kwargs, outputs)
        else:
            new = hook(self, inputs, outputs)
        return outputs if new is None else new
