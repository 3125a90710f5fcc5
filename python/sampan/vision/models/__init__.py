"""Models for pictures: Paddle's `vision.models`, with the same names of layers and parameters.

>>> from sampan.vision import models
>>> net = models.resnet18(num_classes=10)
>>> net.fc.weight.shape, net.layer1[0].bn2.weight.shape
([512, 10], [64])
"""

from .alexnet import *  # noqa: F403
from .densenet import *  # noqa: F403
from .googlenet import *  # noqa: F403
from .inceptionv3 import *  # noqa: F403
from .lenet import *  # noqa: F403
from .mobilenetv1 import *  # noqa: F403
from .mobilenetv2 import *  # noqa: F403
from .mobilenetv3 import *  # noqa: F403
from .resnet import *  # noqa: F403
from .shufflenetv2 import *  # noqa: F403
from .squeezenet import *  # noqa: F403
from .vgg import *  # noqa: F403
