"""Operations on images and boxes."""
