"""Names for annotations: nt.tensor[128, 512]."""


class tensor:
    def __class_getitem__(cls, shape):
        return cls


mutable_tensor = tensor  # what a kernel writes

