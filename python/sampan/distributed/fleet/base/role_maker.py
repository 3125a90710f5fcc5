"""Who is what."""

from ..role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker

__all__ = ["PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker"]
